import { appServiceStatus, keepDeployment } from '../../../src/kinds/app-service/status.js';
import type { AnyObject } from '../../../src/contract/object.js';
import type { Failure } from '../../../src/author/status.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';

interface ReportInput {
  readonly spec?: Partial<AppServiceSpec>;
  /** Of the Deployment; its generation is 2, and seen by its controller. @default - there is no Deployment */
  readonly status?: object;
  readonly generation?: number;
  /** What the Deployment has in its spec, beside a template. */
  readonly kept?: { readonly spec: object };
  /** Beside the Deployment. */
  readonly children?: readonly AnyObject[];
  readonly pods?: readonly object[];
  readonly failures?: readonly Failure[];
  /** @default the first second of 2026 */
  readonly now?: Date;
}

/** The report on AppService shop/web, whose Deployment has a status. */
export function report({ spec, status, generation = 2, kept, children, pods, failures, now }: ReportInput) {
  const identified: AnyObject = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'shop', generation },
    status: { observedGeneration: 2, ...status },
  };
  // By the same projection as in the controller's store.
  const deployment = {
    ...identified,
    ...keepDeployment({ ...identified, spec: { template: {}, ...kept?.spec } }),
  };
  return appServiceStatus({
    cr: {
      apiVersion: 'kosmos.io/v1',
      kind: 'AppService',
      metadata: { name: 'web', namespace: 'shop', generation: 7 },
      spec: { size: 3, image: 'nginx:1.27', ...spec },
    },
    children: [...(children ?? []), ...(status ? [deployment] : [])],
    related: (pods ?? []).map((pod, index) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `web-${index}`, namespace: 'shop' },
      controller: 'web-1',
      ...pod,
    })),
    failures: failures ?? [],
    now: now ?? new Date('2026-01-01T00:00:00Z'),
  });
}

export function counts(replicas: number, updated: number, available: number) {
  return {
    replicas,
    updatedReplicas: updated,
    readyReplicas: available,
    availableReplicas: available,
    unavailableReplicas: replicas - available,
  };
}

export function condition(type: string, status: string, reason: string, message: string) {
  return { type, status, reason, message };
}

export const PROGRESSING = condition(
  'Progressing',
  'True',
  'ReplicaSetUpdated',
  'ReplicaSet "web-1" is progressing.',
);
export const OVERDUE = condition(
  'Progressing',
  'False',
  'ProgressDeadlineExceeded',
  'ReplicaSet "web-1" has timed out progressing.',
);
export const QUOTA = failedCreate('exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1');

/** The words of the API server, as the Deployment reports them. */
export function failedCreate(refusal: string, pod = 'web-1-x2x7q') {
  return condition('ReplicaFailure', 'True', 'FailedCreate', `pods "${pod}" is forbidden: ${refusal}`);
}
