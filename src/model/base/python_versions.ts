/** The minor versions of CPython 3 whose memory Tidemark reads, the oldest and the newest. */
export const OLDEST_PYTHON_MINOR = 9;
export const NEWEST_PYTHON_MINOR = 15;
