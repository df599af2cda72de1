/** What the container may take; alerts compare with it. */
export const MEMORY_LIMIT_MEBIBYTES = 512;
