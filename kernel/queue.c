// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues: each device runs the jobs that may begin, in the order in which that
 * became so.
 *
 * Workers, threads of the kernel's, take slices of the jobs in turn, so that a
 * large copy does not hold up small ones, and several take slices of the same
 * large one. An engine of a device, with room for a few descriptors, would take
 * slices in the same way, and have as many running as there is room for.
 *
 * All that a worker does is part of signalling fences: it must not allocate, nor
 * take a lock under which anybody allocates. lockdep knows (begin_signalling).
 */
#include <linux/cpumask.h>
#include <linux/dma-fence.h>
#include <linux/workqueue.h>

#include "devbuf_private.h"

static struct workqueue_struct *devbuf_queue_workers;

/* The next thing to do; the queue's lock is held. */
static struct devbuf_job *devbuf_queue_take(struct devbuf_queue *queue,
					    struct devbuf_slice *slice)
{
	struct devbuf_job *job;

	list_for_each_entry(job, &queue->jobs, queue_entry) {
		if (devbuf_job_take(job, slice)) {
			queue->nbytes -= slice->piece.nbytes;
			list_move_tail(&job->queue_entry, &queue->jobs);
			return job;
		}
	}
	return NULL;
}

/* Start workers for what there is to do; the queue's lock is held. */
static void devbuf_queue_wake(struct devbuf_queue *queue)
{
	struct devbuf_device *device = container_of(queue, struct devbuf_device,
						    queue);
	u32 max = min_t(u32, num_online_cpus(), DEVBUF_QUEUE_WORKERS);
	u32 i;

	if (list_empty(&queue->jobs) || queue->nr_workers >= max)
		return;
	/* One for whatever there is, and another when that is much, or many. */
	if (queue->nr_workers &&
	    queue->nbytes <= queue->nr_workers * DEVBUF_COPY_STEP &&
	    queue->nr_jobs <= queue->nr_workers * DEVBUF_QUEUE_MANY)
		return;
	for (i = 0; i < max; i++) {
		if (!queue->workers[i].busy) {
			queue->workers[i].busy = true;
			queue->nr_workers++;
			kref_get(&device->ref);
			queue_work(devbuf_queue_workers, &queue->workers[i].work);
			return;
		}
	}
}

static void devbuf_queue_work(struct work_struct *work)
{
	struct devbuf_worker *worker = container_of(work, struct devbuf_worker, work);
	struct devbuf_queue *queue = worker->queue;
	bool signalling = dma_fence_begin_signalling();
	struct devbuf_slice slice;
	struct devbuf_job *job;

	spin_lock_irq(&queue->lock);
	while ((job = devbuf_queue_take(queue, &slice))) {
		devbuf_queue_wake(queue);
		spin_unlock_irq(&queue->lock);
		devbuf_job_run_slice(job, &slice);
		spin_lock_irq(&queue->lock);
		if (!devbuf_job_put_back(job, &slice))
			continue;
		list_del_init(&job->queue_entry);
		queue->nr_jobs--;
		queue->nbytes -= job->rest_nbytes;
		spin_unlock_irq(&queue->lock);
		devbuf_job_finish(job);
		devbuf_job_reap(job);
		spin_lock_irq(&queue->lock);
	}
	worker->busy = false;
	queue->nr_workers--;
	spin_unlock_irq(&queue->lock);
	dma_fence_end_signalling(signalling);
	/* The jobs held it, too, and may be gone. */
	devbuf_device_put(container_of(queue, struct devbuf_device, queue));
}

/**
 * devbuf_queue_add - a job may begin
 * @queue: of its device
 * @job: the job
 *
 * May be called from interrupts.
 */
void devbuf_queue_add(struct devbuf_queue *queue, struct devbuf_job *job)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	list_add_tail(&job->queue_entry, &queue->jobs);
	queue->nr_jobs++;
	queue->nbytes += job->rest_nbytes;
	devbuf_queue_wake(queue);
	spin_unlock_irqrestore(&queue->lock, flags);
}

/**
 * devbuf_queue_run_here - run a small job at once, in the caller's task
 * @queue: of its device
 * @job: the job, which may begin
 */
void devbuf_queue_run_here(struct devbuf_queue *queue, struct devbuf_job *job)
{
	bool signalling = dma_fence_begin_signalling();
	struct devbuf_slice slice;
	bool over = false;

	while (!over) {
		spin_lock_irq(&queue->lock);
		devbuf_job_take(job, &slice);
		spin_unlock_irq(&queue->lock);
		devbuf_job_run_slice(job, &slice);
		spin_lock_irq(&queue->lock);
		over = devbuf_job_put_back(job, &slice);
		spin_unlock_irq(&queue->lock);
	}
	devbuf_job_finish(job);
	dma_fence_end_signalling(signalling);
}

void devbuf_queue_init(struct devbuf_queue *queue)
{
	u32 i;

	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->jobs);
	for (i = 0; i < ARRAY_SIZE(queue->workers); i++) {
		queue->workers[i].queue = queue;
		INIT_WORK(&queue->workers[i].work, devbuf_queue_work);
	}
}

int devbuf_queues_init(void)
{
	/* Fences may be what memory is waiting for: so a rescuer. */
	devbuf_queue_workers = alloc_workqueue("devbuf",
					       WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return devbuf_queue_workers ? 0 : -ENOMEM;
}

void devbuf_queues_exit(void)
{
	destroy_workqueue(devbuf_queue_workers);
}
