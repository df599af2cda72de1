import { OperatorError } from '../../contract/error.js';
import type { KindContext } from '../../contract/kind.js';
import type { CustomResource } from '../../contract/object.js';
import type { Finding, RenderedTogether, TogetherManifest } from '../../contract/render-together.js';
import type { ResourceType } from '../../contract/resource.js';
import { classRefusal, refusalOf } from './acceptance.js';
import { fullName } from './claims.js';
import { entryOf } from './entry.js';
import { targetsIn } from './flags.js';
import { gatewayRendering } from './gateway-port.js';
import type { StreamIngress } from './spec.js';
import { isNginx, targetName, targetNamed } from './targets.js';
import type { NginxTarget, Target, Targets } from './targets.js';
import { portText } from './upstream.js';
import { configMap, dataOf, servicePorts } from './writes.js';

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
  const configMaps = (['TCP', 'UDP'] as const).flatMap((protocol) => {
    const data = dataOf(entries.filter((entry) => entry.protocol === protocol));
    return Object.keys(data).length > 0 ? [configMap(target, protocol, data)] : [];
  });
  return [{ objects: [...configMaps, servicePorts(target, entries)] }];
}

function pathOf(reason: string): string[] {
  if (reason === 'NamespaceNotPermitted') return ['metadata', 'namespace'];
  if (reason === 'ClassNotFound') return ['spec', 'className'];
  return ['spec', reason === 'ProxyProtocolNotSupported' ? 'proxyProtocol' : 'listen'];
}

function error(of: CustomResource, path: readonly (string | number)[], message: string): Finding {
  return { level: 'error', of, path, message };
}
