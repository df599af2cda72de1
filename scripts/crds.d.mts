/** See crds.mjs. */
export function appExampleCrd(source: string): string;
