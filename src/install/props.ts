import type { Kind, Policy } from '../contract/kind.js';
import type { FlagValues } from '../contract/kind-flag.js';
import type { MonitoringProps } from './monitoring/props.js';

/** What is to be installed. */
export interface InstallProps {
  /** Where the operator runs. */
  readonly namespace: string;
  /** With a tag or a digest. */
  readonly image: string;
  readonly kinds: readonly Kind[];
  /** Watched with Roles in them, and nothing cluster-wide. @default - all, with a ClusterRole */
  readonly watchNamespaces?: readonly string[];
  /** Of which one leads. */
  readonly replicas: number;
  /** Values of the kinds' flags: passed on, and a reason for rights. @default - none */
  readonly flags?: FlagValues;
  /** @default - none, which allows all but routes */
  readonly policy?: InstalledPolicy;
  /** @default - nothing of it */
  readonly monitoring?: MonitoringProps;
  /** Who manages what is installed, as the label says by which it is known as ours. @default - `reconstruct install` */
  readonly managedBy?: string;
}

/** What the admin allows. */
export interface InstalledPolicy {
  /** As it was written. */
  readonly text: string;
  readonly parsed: Policy;
}
