import type { StructuralSchema } from './crd.js';

/** An option of the command line that belongs to one kind. */
export interface KindFlag {
  /** With two dashes and in lower case, e.g. `--ingress-namespace`; unique among all kinds and commands. */
  readonly name: string;
  /** What stands for the value in the help, e.g. `namespace`. */
  readonly value: string;
  readonly description: string;
  /** Takes several values, separated by commas or given several times. @default false */
  readonly list?: boolean;
  /** Why a value can't be taken, as a sentence. @default - any value can */
  readonly check?: (value: string) => string | undefined;
  /** The same for whoever can't call `check`, such as a Helm chart; of one value of a list. @default - any string */
  readonly schema?: StructuralSchema;
  /**
   * What a value may look like, where that decides on rights: `Deployment/*`, with `*` for the name of an object.
   * @default - the name alone
   */
  readonly forms?: readonly string[];
}

/** What was given, by the name of the flag: a value, or a list of them where the flag takes one. */
export type FlagValues = Readonly<Record<string, string | readonly string[]>>;
