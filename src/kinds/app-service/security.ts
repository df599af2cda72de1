import type { V1Container, V1PodSpec } from '@kubernetes/client-node';
import { given } from './given.js';
import type { AppServiceSpec, SecurityProfile } from './spec.js';
import type { Wire } from './wire.js';

/**
 * What a profile asks of the pod. Both take the runtime's own seccomp filter and leave the token of the service
 * account away unless it is asked for, which no image notices that doesn't talk to the API server.
 *
 * - `Baseline` adds nothing else, so that every image runs that runs without it, as root too.
 * - `Restricted` adds what the Pod Security Standard of that name demands. Variables for each Service of the
 *   namespace, which tell an intruder the way, aren't injected either.
 *
 * @see https://kubernetes.io/docs/concepts/security/pod-security-standards/
 */
export function podSecurity(spec: AppServiceSpec): Partial<Wire<V1PodSpec>> {
  const { securityProfile, automountServiceAccountToken } = spec;
  if (!securityProfile) return given(spec, 'automountServiceAccountToken');
  const isRestricted = securityProfile === 'Restricted';
  return {
    automountServiceAccountToken: automountServiceAccountToken ?? false,
    securityContext: {
      ...(isRestricted && { runAsNonRoot: true }),
      seccompProfile: { type: 'RuntimeDefault' },
    },
    ...(isRestricted && { enableServiceLinks: false }),
  };
}

/** What a profile asks of the container, where a pod can't say it for all of them. */
export function containerSecurity(profile: SecurityProfile | undefined): Partial<Wire<V1Container>> {
  if (profile !== 'Restricted') return {};
  return { securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } };
}
