/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the module does more in a test build (DEVBUF_TEST=1), and nothing else.
 */
#ifndef DEVBUF_TEST_H
#define DEVBUF_TEST_H

#ifdef DEVBUF_TEST
int devbuf_mock_register(void);
void devbuf_mock_unregister(void);
#else
static inline int devbuf_mock_register(void)
{
	return 0;
}

static inline void devbuf_mock_unregister(void)
{
}
#endif

#endif /* DEVBUF_TEST_H */
