import type { Readiness } from '../../../contract/conditions.js';
import type { AppServiceSpec } from '../spec.js';
import { sentence } from './sentence.js';

type Profile = AppServiceSpec['securityProfile'];

/** Why replicas can't be created, in the words of the API server and with a remedy where one is known. */
export function replicaFailure(text: string, profile: Profile): Readiness {
  const refusal = withoutPod(text);
  const security = /^violates PodSecurity "([^":]+)(?::[^"]*)?": (.*)$/s.exec(refusal);
  if (security) {
    const [, level = '', violations = ''] = security;
    return {
      phase: 'stalled',
      reason: 'PodSecurityViolation',
      message: sentence(
        `the namespace enforces the Pod Security Standard "${level}", and the pods don't meet it: ${violations}`,
        securityRemedy(level, profile),
      ),
    };
  }
  const reason = refusal.startsWith('exceeded quota') ? 'QuotaExceeded' : 'ReplicaFailure';
  return { phase: 'failing', reason, message: refusal };
}

function securityRemedy(level: string, profile: Profile): string {
  if (level === 'restricted' && profile !== 'Restricted')
    return 'add "securityProfile: Restricted" to the spec';
  return (
    'the AppService asks for none of it, so look for what changes its pods, such as an admission webhook, ' +
    'or lower the label pod-security.kubernetes.io/enforce of the namespace'
  );
}

/** Without the name of the pod that was tried, which is another one each time. */
function withoutPod(text: string): string {
  return text.replace(/^pods "[^"]*" is forbidden: /, '');
}
