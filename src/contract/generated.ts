/** A value that the operator makes at random: text, or bytes in base64 for a key. */
export interface GeneratedValue {
  /** Characters of the text. @default 32 */
  readonly length?: number;
  /** Characters that it is made of, each once. @default - letters and digits */
  readonly alphabet?: string;
  /** Random bytes, instead of text: the value is their base64. @default - text */
  readonly bytes?: number;
  /** Whether a value that was emptied counts as missing, and is made again. @default false - it stalls the custom resource */
  readonly emptyIsMissing?: boolean;
}

/** Values that the operator makes for each custom resource of a kind, by their keys in its Secret. */
export type GeneratedValues = Readonly<Record<string, GeneratedValue>>;

/** Names by which a construct refers to generated values; it never gets the values themselves. */
export interface Generated<Name extends string = string> {
  /** The Secret that holds all values, e.g. for `envFrom` or a volume. */
  readonly secretName: string;
  /** Values for `secretKeyRef`, by name. */
  readonly keys: { readonly [Key in Name]: { readonly name: string; readonly key: Key } };
  /**
   * Hash of the values, keyed by the UID of their Secret, for `checksumAnnotations({ generated })`; without a cluster, or before they
   * are made, `unknown-without-a-cluster`.
   */
  readonly checksum: string;
}
