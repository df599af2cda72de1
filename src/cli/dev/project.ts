import type { OwnedKind } from '../../contract/kind.js';
import type { AnyObject } from '../../contract/object.js';
import type { ResourceType } from '../../contract/resource.js';
import type { PolicyRule } from '../../install/rules.js';

/** A kind as far as it is data, so that one process can tell another of it. */
export interface LoadedKind extends Pick<OwnedKind, 'name' | 'type' | 'crd'> {
  readonly children: readonly ResourceType[];
  readonly formerChildren: readonly ResourceType[];
}

/** A custom resource from a file, with its namespace, in the version that it is written in. */
export interface Sample {
  readonly type: ResourceType;
  readonly object: AnyObject;
}

/** What a configuration and its samples come to. */
export interface Project {
  readonly kinds: readonly LoadedKind[];
  /** What the operator has to be allowed. */
  readonly rules: readonly PolicyRule[];
  /** The files and folders that the samples are in. */
  readonly sources: readonly string[];
  /** All of them, or a line for each mistake in them, with its place. */
  readonly samples: { readonly valid: readonly Sample[] } | { readonly problems: readonly string[] };
}

/** Why a configuration can't be loaded. */
export interface LoadFailure {
  readonly message: string;
  /** Where it was thrown. @default - the message says it */
  readonly stack?: string;
}

/** What the process that loads a project tells the one that asked for it. */
export type LoadOutcome = { readonly project: Project } | { readonly failure: LoadFailure };

export interface ProjectOptions {
  /** Files, folders and patterns. Empty: where samples usually are. */
  readonly samples: readonly string[];
  /** The path of the configuration. @default - there is none */
  readonly config?: string;
  /** @default - those of the configuration */
  readonly kinds?: readonly string[];
}
