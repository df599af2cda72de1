import { kindOf } from '../../author/define-kind.js';
import { OperatorError } from '../../contract/error.js';
import type { Finding, Kind, KindContext, RenderedTogether, TogetherManifest } from '../../contract/kind.js';
import { keyOf, type CustomResource } from '../../contract/object.js';
import { lazily } from '../common.js';
import { classRefusal, refusalOf } from './claims.js';
import { gatewayObjects } from './gateway.js';
import { configMapsOf, entryOf, servicePorts } from './nginx.js';
import { sharedController, statusController } from './controllers.js';
import { portText, type StreamIngress } from './spec.js';
import { beyondBounds, flags, isNginx, policySchema, targetName, targetsIn } from './targets.js';
import type { Target, Targets } from './targets.js';
import { gatewayTypes, watchesFor } from './watched.js';

/**
 * StreamIngress of `nginx-stream.jeffthecoder.xyz/v1beta1`: a TCP or UDP port of a shared proxy that leads to a
 * Service.
 */
export const streamIngress = lazily((): Kind => {
  const kind = kindOf(
    new URL('../../../crds/streamingresses.nginx-stream.jeffthecoder.xyz.yaml', import.meta.url),
  );
  const { type } = kind;
  return {
    ...{ ...kind, policySchema, policyAtStart: true, flags },
    writers: 'admin',
    rendering: { together: renderTogether },
    controllers: (context) => {
      const targets = targetsIn(context);
      const watches = watchesFor(type, targets);
      const statuses = statusController(type, targets, watches);
      return targets.all.some(isNginx) ? [statuses, sharedController(type, targets, watches)] : [statuses];
    },
  };
});

/**
 * Renders all StreamIngresses of a repository at once: for an ingress-nginx what they add to its ConfigMaps and its
 * Service, to be applied or used as patches; for a Gateway the objects of each. Two that ask for one port are both refused,
 * since a file has no age.
 */
function renderTogether(resources: readonly CustomResource[], context: KindContext): RenderedTogether {
  const crs = resources as readonly StreamIngress[];
  const targets = targetsIn(context);
  const findings = crs.flatMap((cr) => findingsOf(cr, crs, targets));
  if (findings.length > 0) return { manifests: [], findings };
  const parts = targets.all.flatMap((target) => {
    const served = crs.filter((cr) => targetOf(cr, targets) === target);
    return renderTarget(target, served, targets);
  });
  return {
    manifests: parts.flatMap((part) => ('objects' in part ? part : [])),
    findings: parts.flatMap((part) => ('objects' in part ? [] : part)),
  };
}

function findingsOf(cr: StreamIngress, crs: readonly StreamIngress[], targets: Targets): Finding[] {
  const target = targetOf(cr, targets);
  if (cr.metadata.namespace === undefined) {
    const message =
      'metadata.namespace is missing, and says where the upstream is; add it, or give --namespace';
    return [error(cr, ['metadata'], message)];
  }
  const refusal = target ? refusalOf(target, cr) : classRefusal(cr.spec.className);
  if (refusal) return [error(cr, PATHS[refusal.reason] ?? ['spec', 'listen'], refusal.message)];
  const others = crs.filter(
    (other) => other !== cr && targetOf(other, targets) === target && portText(other) === portText(cr),
  );
  if (others.length === 0) return [];
  const names = others.map(keyOf).join(', ');
  const message = `spec.listen: ${portText(cr)} of the target ${target?.name ?? ''} is asked for by ${names} too; give each its own port`;
  return [error(cr, ['spec', 'listen'], message)];
}

function targetOf(cr: StreamIngress, targets: Targets): Target | undefined {
  const wanted = targetName(targets, cr.spec.className);
  return targets.all.find(({ name }) => name === wanted);
}

function renderTarget(
  target: Target,
  crs: readonly StreamIngress[],
  { routeVersion }: Targets,
): (TogetherManifest | Finding)[] {
  const beyond = beyondBounds(target, crs, () => false);
  if (beyond.size > 0) return [...beyond].map(([cr, message]) => error(cr, ['spec'], message));
  if (isNginx(target)) {
    const entries = crs.map(entryOf);
    const objects = [...configMapsOf(target, entries), servicePorts(target, entries)];
    return crs.length > 0 ? [{ objects }] : [];
  }
  const types = gatewayTypes(routeVersion);
  return crs.map((of) => {
    const objects = gatewayObjects({ target, types }, of);
    return objects instanceof OperatorError ? error(of, objects.path, objects.message) : { of, objects };
  });
}

/** Paths of the causes of refusals, if not `spec.listen`. */
const PATHS: Readonly<Record<string, readonly string[]>> = {
  NamespaceNotPermitted: ['metadata', 'namespace'],
  ClassNotFound: ['spec', 'className'],
  ProxyProtocolNotSupported: ['spec', 'proxyProtocol'],
};

function error(of: CustomResource, path: readonly (string | number)[], message: string): Finding {
  return { level: 'error', of, path, message };
}
