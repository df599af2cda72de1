/**
 * A type of client-node as its values travel on the wire: plain, read-only JSON instead of instances of its
 * classes, with times as strings.
 */
export type Wire<T> = T extends Date
  ? string
  : T extends object
    ? { readonly [Key in keyof T]: Wire<T[Key]> }
    : T;
