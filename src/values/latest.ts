/**
 * Puts a value at the end of a map, and drops its first ones where there are more than a limit: a hundredth of it at once, since
 * a look at the first of a map steps over all that were deleted before.
 */
export function setLatest<V>(map: Map<string, V>, key: string, value: V, limit = Infinity): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= limit) return;
  let surplus = Math.ceil(limit / 100);
  for (const oldest of map.keys()) {
    map.delete(oldest);
    if (--surplus === 0) return;
  }
}
