// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs: copies that are queued, from the command to the end of their fence.
 *
 * A job is made whole (memory held, the caller's pages pinned, everything
 * allocated), published, and waits at its gate for the fences that it comes
 * after. Then its device's queue runs it, and it is finished: nobody need wait for
 * it any more. What it held is let go elsewhere, since that may wait for others.
 *
 * A fence never signals before those that its job was ordered after, not even
 * when the job was cancelled: whoever waits for it relies on that.
 */
#include <linux/dma-fence.h>
#include <linux/file.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/sync_file.h>
#include <linux/workqueue.h>

#include "devbuf_private.h"

static struct workqueue_struct *devbuf_reaper;

static void devbuf_job_free(struct kref *ref)
{
	struct devbuf_job *job = container_of(ref, struct devbuf_job, ref);

	devbuf_gate_release(&job->gate);
	devbuf_pins_release(&job->pins);
	devbuf_pieces_put(job->pieces, job->nr_pieces);
	dma_fence_put(&job->fence->base);
	devbuf_device_put(job->device);
	/* Somebody may be reading it by way of its fence. */
	kvfree_rcu(job, rcu);
}

/* May sleep, even on what waits for our fences: see devbuf_job_reap(). */
static void devbuf_job_put(struct devbuf_job *job)
{
	kref_put(&job->ref, devbuf_job_free);
}

static void devbuf_job_reap_work(struct work_struct *work)
{
	devbuf_job_put(container_of(work, struct devbuf_job, reap_work));
}

/**
 * devbuf_job_reap - let go of a job that is finished
 * @job: the job; may be gone afterwards
 *
 * Workers do not free what it holds themselves: freeing memory, and unpinning
 * pages, may wait for somebody who waits for the next fence. Nor do jobs wait for
 * each other here: a page may be locked for as long as its file system likes.
 */
void devbuf_job_reap(struct devbuf_job *job)
{
	INIT_WORK(&job->reap_work, devbuf_job_reap_work);
	queue_work(devbuf_reaper, &job->reap_work);
}

int devbuf_jobs_init(void)
{
	devbuf_reaper = alloc_workqueue("devbuf-reaper", WQ_UNBOUND, 0);
	return devbuf_reaper ? 0 : -ENOMEM;
}

void devbuf_jobs_exit(void)
{
	/* The last job's fence has let go of the module; the reaper has to end. */
	destroy_workqueue(devbuf_reaper);
}

/* Which ends of a piece are memory of ours, and which are written. */
static u32 devbuf_piece_accesses(const struct devbuf_piece *piece,
				 struct devbuf_access *accesses)
{
	const struct devbuf_end *ends[] = { &piece->src, &piece->dst };
	u32 nr = 0, i;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		if (!ends[i]->storage)
			continue;
		accesses[nr++] = (struct devbuf_access) {
			.storage = ends[i]->storage,
			.start = ends[i]->pos,
			.last = ends[i]->pos + piece->nbytes - 1,
			.write = ends[i] == &piece->dst,
		};
	}
	return nr;
}

static int devbuf_access_compare(const void *a, const void *b)
{
	const struct devbuf_access *x = a, *y = b;

	if (x->storage != y->storage)
		return x->storage < y->storage ? -1 : 1;
	if (x->write != y->write)
		return x->write ? 1 : -1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/*
 * Make one of accesses that meet or touch: then how much others have to look at
 * does not grow with the square of what there is. And list each storage once.
 */
static void devbuf_job_unite_accesses(struct devbuf_job *job)
{
	struct devbuf_access *last = NULL, *next;
	u32 nr = job->nr_accesses, i;

	sort(job->accesses, nr, sizeof(*job->accesses), devbuf_access_compare, NULL);
	job->nr_accesses = 0;
	for (i = 0; i < nr; i++) {
		next = &job->accesses[i];
		if (!last || next->storage != last->storage)
			job->storages[job->nr_storages++] = next->storage;
		if (last && next->storage == last->storage &&
		    next->write == last->write && next->start <= last->last + 1) {
			last->last = max(last->last, next->last);
			continue;
		}
		last = &job->accesses[job->nr_accesses++];
		*last = *next;
	}
}

/**
 * devbuf_job_touches - does the job touch an export's pages?
 * @job: a job that is published, or about to be
 * @export: the export
 * @write: set to whether it writes there
 *
 * Return: whether it does.
 */
bool devbuf_job_touches(const struct devbuf_job *job,
			const struct devbuf_export_info *export, bool *write)
{
	const struct devbuf_access *access;
	bool touches = false;
	u32 i;

	*write = false;
	for (i = 0; i < job->nr_accesses && !*write; i++) {
		access = &job->accesses[i];
		if (access->storage != export->storage ||
		    !devbuf_export_meets(export, access->start, access->last))
			continue;
		touches = true;
		*write = access->write;
	}
	return touches;
}

static void devbuf_job_may_begin(struct devbuf_gate *gate)
{
	struct devbuf_job *job = container_of(gate, struct devbuf_job, gate);

	devbuf_queue_add(&job->device->queue, job);
}

/*
 * Give up a job, if it is not over: what has not begun never will, and somebody
 * who waits for it on a ring is told at once. Its memory is not touched then, so
 * that he may have the caller's pages back.
 */
static bool devbuf_job_cancel(struct devbuf_request *request)
{
	struct devbuf_job *job = container_of(request, struct devbuf_job, request);
	unsigned long flags;
	bool found;
	int error;

	spin_lock_irqsave(&job->device->queue.lock, flags);
	found = !job->over && !cmpxchg(&job->gate.error, 0, -ECANCELED);
	/* A fence that it waits for may have failed before: nor will it begin then. */
	error = job->begun || job->over ? 0 : READ_ONCE(job->gate.error);
	/* What has begun ends with its next turn: now. */
	if (found && !list_empty(&job->queue_entry))
		list_move(&job->queue_entry, &job->device->queue.jobs);
	spin_unlock_irqrestore(&job->device->queue.lock, flags);
	if (error)
		devbuf_request_complete(request, error);
	return found;
}

static void devbuf_job_reply(struct devbuf_request *request,
			     struct devbuf_command *cmd)
{
	struct devbuf_job *job = container_of(request, struct devbuf_job, request);

	cmd->arg.copy.out_done_nbytes = job->done_nbytes;
	cmd->arg.copy.out_path = job->path;
}

static void devbuf_job_put_request(struct devbuf_request *request)
{
	devbuf_job_put(container_of(request, struct devbuf_job, request));
}

static const struct devbuf_request_ops devbuf_job_request_ops = {
	.cancel	= devbuf_job_cancel,
	.reply	= devbuf_job_reply,
	.put	= devbuf_job_put_request,
};

/*
 * Who runs it: the device that has the most to do with it, so that one that is
 * slow, or dead, holds up nobody else.
 */
static struct devbuf_device *devbuf_job_device(const struct devbuf_piece *piece)
{
	const struct devbuf_storage *dst = piece->dst.storage;
	const struct devbuf_storage *src = piece->src.storage;

	if (!dst || (src && !src->stays && dst->stays))
		return src->device;
	return dst->device;
}

/* A job of these pieces, whose references are still the caller's. */
static struct devbuf_job *devbuf_job_new(const struct devbuf_piece *pieces, u32 nr)
{
	/* A copy has one end here, a transfer two. */
	bool transfer = pieces[0].dst.storage && pieces[0].src.storage;
	u32 nr_accesses = transfer ? 2 * nr : nr, i;
	struct devbuf_job *job;
	size_t size;

	size = sizeof(*job) + nr * sizeof(*job->pieces) +
	       nr_accesses * (sizeof(*job->accesses) + sizeof(*job->storages)) +
	       (transfer ? 0 : nr * sizeof(*job->iters));
	job = kvzalloc(size, DEVBUF_GFP);
	if (!job)
		return NULL;
	job->pieces = (void *)(job + 1);
	job->accesses = (void *)(job->pieces + nr);
	job->storages = (void *)(job->accesses + nr_accesses);
	if (!transfer)
		job->iters = (void *)(job->storages + nr_accesses);

	kref_init(&job->ref);
	INIT_LIST_HEAD(&job->queue_entry);
	job->gate.open = devbuf_job_may_begin;
	job->device = devbuf_job_device(&pieces[0]);
	job->fence = devbuf_fence_new(job->device);
	if (!job->fence) {
		kvfree(job);
		return NULL;
	}
	kref_get(&job->device->ref);
	rcu_assign_pointer(job->fence->job, job);
	memcpy(job->pieces, pieces, nr * sizeof(*pieces));
	for (i = 0; i < nr; i++) {
		job->pieces[i].queued = true;
		job->nr_accesses += devbuf_piece_accesses(&pieces[i],
							  job->accesses +
							  job->nr_accesses);
		job->rest_nbytes += pieces[i].nbytes;
	}
	devbuf_job_unite_accesses(job);
	for (i = 0; i < job->nr_accesses; i++) {
		job->accesses[i].fence = &job->fence->base;
		RB_CLEAR_NODE(&job->accesses[i].node);
	}
	return job;
}

/* The caller's bytes of each piece. */
static int devbuf_job_get_user_memory(struct devbuf_job *job,
				      struct devbuf_command *cmd,
				      const struct devbuf_piece *pieces, u32 nr)
{
	bool in = pieces[0].dst.storage;

	if (!job->iters)
		return 0;
	if (devbuf_uring_is_fixed(cmd))
		return devbuf_uring_import(cmd, pieces, nr, in, job->iters);
	return devbuf_pins_add(&job->pins, pieces, nr, in, job->iters);
}

/* Fences and memory of its own: the last step before others see it. */
static int devbuf_job_prepare(struct devbuf_job *job, struct devbuf_command *cmd,
			      const struct devbuf_piece *pieces, u32 nr,
			      struct devbuf_fences *fences)
{
	const struct devbuf_copy *arg = &cmd->arg.copy;
	int ret;

	ret = devbuf_fences_add_user(fences, arg->in_fences, arg->nr_in_fences);
	if (!ret)
		ret = devbuf_job_get_user_memory(job, cmd, pieces, nr);
	return ret;
}

/* Publish the job, or, without implicit ordering, only make it complete. */
static int devbuf_job_order(struct devbuf_job *job, struct devbuf_command *cmd,
			    struct devbuf_fences *fences)
{
	int ret;

	if (!(cmd->arg.copy.flags & DEVBUF_ASYNC_EXPLICIT))
		return devbuf_publish(job, fences, !cmd->ring);
	job->nr_accesses = 0;
	job->nr_storages = 0;
	ret = devbuf_gate_reserve(&job->gate, fences->nr);
	if (!ret)
		job->signalling = dma_fence_begin_signalling();
	return ret;
}

/*
 * Let it begin, when its fences have signalled. Small ones that can begin are
 * run here and now: that is less work than to ask somebody else.
 */
static void devbuf_job_start(struct devbuf_job *job, struct devbuf_fences *fences,
			     u32 nr_in_fences)
{
	bool small = job->rest_nbytes <= DEVBUF_COPY_SMALL;
	bool signalling = job->signalling;
	bool open, here;

	/* Unless it opens at once, somebody else may be through with it by now. */
	open = devbuf_gate_arm(&job->gate, fences, nr_in_fences);
	here = open && small;
	if (here)
		devbuf_queue_run_here(&job->device->queue, job);
	else if (open)
		devbuf_queue_add(&job->device->queue, job);
	dma_fence_end_signalling(signalling);
	if (here)
		devbuf_job_put(job);
}

/* What becomes visible once the job is published. */
static int devbuf_job_make_out_fence(struct devbuf_job *job,
				     struct devbuf_command *cmd,
				     struct sync_file **out_fence)
{
	struct sync_file *sync_file;
	int fd;

	*out_fence = NULL;
	if (!(cmd->arg.copy.flags & DEVBUF_ASYNC_OUT_FENCE))
		return 0;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	sync_file = sync_file_create(&job->fence->base);
	if (!sync_file) {
		put_unused_fd(fd);
		return -ENOMEM;
	}
	cmd->arg.copy.out_fence = fd;
	*out_fence = sync_file;
	return 0;
}

/* Queue with DEVBUF_ASYNC: the command is over when this is. */
static int devbuf_job_queue_async(struct devbuf_job *job, struct devbuf_command *cmd,
				  struct devbuf_fences *fences)
{
	struct devbuf_copy *arg = &cmd->arg.copy;
	struct sync_file *out_fence;
	int ret;

	ret = devbuf_job_make_out_fence(job, cmd, &out_fence);
	if (ret)
		return ret;
	ret = devbuf_command_reply(cmd);
	if (ret)
		goto err_fence;
	ret = devbuf_request_begin(&job->request, cmd);
	if (ret)
		goto err_fence;
	ret = devbuf_job_order(job, cmd, fences);
	if (ret)
		goto err_request;
	if (out_fence)
		fd_install(arg->out_fence, out_fence->file);
	devbuf_job_start(job, fences, arg->nr_in_fences);
	return 0;

err_request:
	devbuf_request_remove(&job->request);
err_fence:
	if (out_fence) {
		put_unused_fd(arg->out_fence);
		fput(out_fence->file);
	}
	return ret;
}

/* Queue by a ring, which is told when the job is over. */
static int devbuf_job_queue_ring(struct devbuf_job *job, struct devbuf_command *cmd,
				 struct devbuf_fences *fences)
{
	int ret;

	ret = devbuf_request_begin_ring(&job->request, cmd);
	if (ret)
		return ret;
	ret = devbuf_job_order(job, cmd, fences);
	if (ret) {
		devbuf_request_remove(&job->request);
		return ret;
	}
	kref_get(&job->ref);	/* the ring's */
	devbuf_job_start(job, fences, cmd->arg.copy.nr_in_fences);
	devbuf_request_set_up(&job->request, cmd);
	return -EIOCBQUEUED;
}

/**
 * devbuf_job_queue - queue a copy
 * @cmd: COPYIN, COPYOUT or TRANSFER
 * @pieces: its pieces, resolved
 * @nr: how many
 *
 * Takes over the storages' references if it succeeds.
 *
 * Return: 0 when the command is over, -EIOCBQUEUED when its ring will be told;
 * otherwise nothing was queued: -EINVAL, -EBADF, -EFAULT, -ENOMEM, -EMFILE,
 * -EINTR, -ERESTARTSYS, or -EDQUOT when too much is queued.
 */
int devbuf_job_queue(struct devbuf_command *cmd, const struct devbuf_piece *pieces,
		     u32 nr)
{
	bool async = cmd->arg.copy.flags & DEVBUF_ASYNC;
	struct devbuf_fences fences;
	struct devbuf_job *job;
	int ret;

	job = devbuf_job_new(pieces, nr);
	if (!job)
		return -ENOMEM;
	job->request.ops = &devbuf_job_request_ops;
	job->request.cookie = cmd->arg.copy.cookie;
	job->request.nr_ranges = nr;
	job->request.nbytes = job->rest_nbytes;

	devbuf_fences_init(&fences);
	ret = devbuf_job_prepare(job, cmd, pieces, nr, &fences);
	if (!ret) {
		/* From here on it may end, and be gone, at any time. */
		job->nr_pieces = nr;
		ret = async ? devbuf_job_queue_async(job, cmd, &fences) :
			      devbuf_job_queue_ring(job, cmd, &fences);
	}
	devbuf_fences_release(&fences);
	if (ret && ret != -EIOCBQUEUED) {
		/* Nobody has seen it, and the memory is still the caller's. */
		job->nr_pieces = 0;
		devbuf_job_put(job);
	}
	return ret;
}

/*
 * Who waits for the fence may deallocate the memory then, and want it back at
 * once. So the job does not keep it until it is reaped, unless it is the last.
 */
static void devbuf_job_let_go(struct devbuf_job *job)
{
	struct devbuf_piece *piece;
	u32 i;

	for (i = 0; i < job->nr_pieces; i++) {
		piece = &job->pieces[i];
		/* What is mapped for an engine stays until that is undone. */
		if (piece->dma)
			continue;
		if (piece->dst.storage && refcount_dec_not_one(&piece->dst.storage->ref))
			piece->dst.storage = NULL;
		if (piece->src.storage && refcount_dec_not_one(&piece->src.storage->ref))
			piece->src.storage = NULL;
	}
}

/**
 * devbuf_job_finish - nobody need wait for it any more
 * @job: over, and in no queue
 *
 * Part of signalling.
 */
void devbuf_job_finish(struct devbuf_job *job)
{
	int error = READ_ONCE(job->gate.error);
	u32 i;

	/* The bytes first, and then a look at who might want them synced. */
	smp_mb();
	if (job->prepared)
		for (i = 0; i < job->nr_pieces && i <= job->piece; i++) {
			devbuf_piece_end(&job->pieces[i]);
			cond_resched();
		}
	for (i = 0; i < job->nr_accesses; i++)
		devbuf_access_end(&job->accesses[i]);
	RCU_INIT_POINTER(job->fence->job, NULL);
	/* Before it signals: who waits for it may queue as much again. */
	devbuf_job_let_go(job);
	devbuf_pins_uncharge(&job->pins);
	devbuf_request_remove(&job->request);
	if (error)
		dma_fence_set_error(&job->fence->base, error);
	dma_fence_signal(&job->fence->base);
	devbuf_request_complete(&job->request, error);
}
