/**
 * Conditions by the rules of kstatus, so that `kubectl wait`, Argo CD and Flux read them right.
 * @see https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
 */

/** Specifies whether a condition holds. */
export type ConditionStatus = 'True' | 'False' | 'Unknown';

/** A condition, as it stands in the status. */
export interface Condition {
  readonly type: string;
  readonly status: ConditionStatus;
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
  /** RFC 3339, whole seconds; moves only when `status` flips. */
  readonly lastTransitionTime: string;
  /** The generation of the custom resource that the condition speaks of. */
  readonly observedGeneration?: number;
}

/** A condition before it is known when it flipped. */
export type ConditionProps = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/**
 * State of a custom resource, in the one word that its three standard conditions are derived from.
 *
 * | | Ready | Reconciling | Stalled |
 * |---|---|---|---|
 * | `ready` | True | False | False |
 * | `progressing`: under way, nothing is wrong | Unknown | True | False |
 * | `failing`: something is wrong and may heal by itself | False | True | False |
 * | `stalled`: stays so until something is changed | False | False | True |
 */
export type Phase = 'ready' | 'progressing' | 'failing' | 'stalled';

/** Status of a custom resource, of which its three standard conditions are made. */
export interface Readiness {
  readonly phase: Phase;
  /** CamelCase; listed in docs/reference. */
  readonly reason: string;
  /** A sentence for people. */
  readonly message: string;
}
