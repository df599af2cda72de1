import { loadCrd, servedType, storedVersion } from '../../contract/crd.js';
import { OperatorError } from '../../contract/error.js';
import type { Kind, KindContext, Finding, RenderedTogether, TogetherManifest } from '../../contract/kind.js';
import type { CustomResource } from '../../contract/object.js';
import type { ResourceType } from '../../contract/resource.js';
import { classRefusal, fullName, refusalOf } from './claims.js';
import { gatewayRendering } from './gateway-port.js';
import { entryOf } from './openings.js';
import { flags, targetsIn } from './settings.js';
import { SharedController } from './shared-controller.js';
import { portText } from './spec.js';
import type { StreamIngress } from './spec.js';
import { StatusController } from './status-controller.js';
import { isNginx, policySchema, targetName, targetNamed } from './targets.js';
import type { NginxTarget, Target, Targets } from './targets.js';
import { watchesFor } from './view.js';
import { configMapsOf, servicePorts } from './writes.js';

const crd = loadCrd(
  new URL('../../../crds/streamingresses.nginx-stream.jeffthecoder.xyz.yaml', import.meta.url),
);
const type = servedType(crd, storedVersion(crd));

/**
 * StreamIngress of `nginx-stream.jeffthecoder.xyz/v1beta1`: a TCP or UDP port of a shared proxy that leads to a
 * Service.
 */
export const streamIngress: Kind = {
  name: 'streamingress',
  ...{ type, crd, policySchema, policyAtStart: true, flags },
  writers: 'admin',
  rendering: { together: (resources, context) => renderTogether(type, resources, context) },
  controllers: (context) => {
    const targets = targetsIn(context);
    const watches = watchesFor(type, targets);
    const statuses = new StatusController(type, targets, watches, context.render);
    return targets.all.some(isNginx) ? [statuses, new SharedController(type, targets, watches)] : [statuses];
  },
};

/**
 * All StreamIngresses of a repository at once: for an ingress-nginx what they add to its ConfigMaps and its Service, to
 * be applied or used as patches; for a Gateway the objects of each. Two that ask for one port are both refused, since a
 * file has no age.
 */
export function renderTogether(
  type: ResourceType,
  resources: readonly CustomResource[],
  context: KindContext,
): RenderedTogether {
  const crs = resources as readonly StreamIngress[];
  const targets = targetsIn(context);
  const findings = crs.flatMap((cr) => findingsOf(cr, crs, targets));
  if (findings.some(({ level }) => level === 'error')) return { manifests: [], findings };
  const parts = targets.all.map((target) =>
    renderTarget(type, target, served(target, crs, targets), targets, context),
  );
  return {
    manifests: parts.flatMap(({ manifests }) => manifests),
    findings: [...findings, ...parts.flatMap((part) => part.findings ?? [])],
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
  if (refusal) return [error(cr, pathOf(refusal.reason), refusal.message)];
  const others = crs.filter(
    (other) => other !== cr && targetOf(other, targets) === target && portText(other) === portText(cr),
  );
  if (others.length === 0) return [];
  const names = others.map(fullName).join(', ');
  const message = `spec.listen: ${portText(cr)} of the target ${target?.name ?? ''} is asked for by ${names} too; give each its own port`;
  return [error(cr, ['spec', 'listen'], message)];
}

function targetOf(cr: StreamIngress, targets: Targets): Target | undefined {
  return targetNamed(targets, targetName(targets, cr.spec.className));
}

function served(target: Target, crs: readonly StreamIngress[], targets: Targets): StreamIngress[] {
  return crs.filter((cr) => targetOf(cr, targets) === target);
}

function renderTarget(
  type: ResourceType,
  target: Target,
  crs: readonly StreamIngress[],
  { routeVersion }: Targets,
  context: KindContext,
): RenderedTogether {
  const { maxListeners = Infinity } = target;
  if (crs.length > maxListeners) {
    const message = `the target ${target.name} opens ${maxListeners} ports at most, and ${crs.length} are asked for; remove some`;
    return { manifests: [], findings: [{ level: 'error', message }] };
  }
  if (isNginx(target)) return { manifests: nginxManifests(target, crs) };
  const rendering = gatewayRendering(type, target, routeVersion);
  const manifests: TogetherManifest[] = [];
  const findings: Finding[] = [];
  for (const cr of crs) {
    try {
      manifests.push({ of: cr, objects: context.render(rendering, cr) });
    } catch (thrown) {
      if (!(thrown instanceof OperatorError)) throw thrown;
      findings.push(error(cr, thrown.path, thrown.message));
    }
  }
  return { manifests, findings };
}

function nginxManifests(target: NginxTarget, crs: readonly StreamIngress[]): TogetherManifest[] {
  if (crs.length === 0) return [];
  const entries = crs.map(entryOf);
  return [{ objects: [...configMapsOf(target, entries), servicePorts(target, entries)] }];
}

function pathOf(reason: string): string[] {
  if (reason === 'NamespaceNotPermitted') return ['metadata', 'namespace'];
  if (reason === 'ClassNotFound') return ['spec', 'className'];
  return ['spec', reason === 'ProxyProtocolNotSupported' ? 'proxyProtocol' : 'listen'];
}

function error(of: CustomResource, path: readonly (string | number)[], message: string): Finding {
  return { level: 'error', of, path, message };
}
