/**
 * Orders two resource versions of one type: negative if `a` is the older.
 *
 * They are decimal integers by contract since Kubernetes 1.35, and in practice always were; comparing length and
 * then text is exact at any size.
 * @see https://github.com/kubernetes/enhancements/issues/5504
 */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}
