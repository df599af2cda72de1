// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { childReadiness, defineCrd, defineKind, OperatorError, selectorLabels } from 'cdk8s-reconstruct';

const text = /** @type {const} */ ({ type: 'string', minLength: 1 });
const count = /** @type {const} */ ({ type: 'integer', format: 'int32', minimum: 0 });
const crd = defineCrd({
  ...{ group: 'postgresql.example.com', kind: 'Cluster', description: 'PostgreSQL with failover.' },
  spec: /** @type {const} */ ({
    type: 'object',
    properties: {
      instances: { ...count, minimum: 1, maximum: 9, default: 1 },
      imageName: { ...text, default: 'ghcr.io/cloudnative-pg/postgresql:17' },
      storageSize: { ...text, default: '1Gi' },
      failoverDelay: { ...count, default: 0, description: 'Seconds until a failing primary is replaced.' },
    },
  }),
  status: /** @type {const} */ ({
    ...{ instances: count, readyInstances: count, latestGeneratedNode: count },
    ...{ currentPrimary: text, currentPrimaryFailingSince: text },
  }),
  columns: [{ name: 'Primary', type: 'string', jsonPath: '.status.currentPrimary' }],
});
const keep = (/** @type {any} */ { spec }) => ({ image: String(spec.containers[0].image) });
const children = /** @type {const} */ ([
  { apiVersion: 'v1', kind: 'Service' },
  { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' },
  { apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
  { apiVersion: 'batch/v1', kind: 'Job', createOnly: ['.spec'] },
  { apiVersion: 'v1', kind: 'Pod', createOnly: ['.spec'], keep },
]);
const INITIALIZED = 'postgresql.example.com/initialized';
const serialOf = (/** @type {string} */ name) => Number(/-(\d+)(-init|-join)?$/.exec(name)?.[1] ?? 0);
const isReady = (/** @type {any} */ pod) =>
  pod && !pod.metadata.deletionTimestamp && childReadiness(pod).phase === 'ready';

class Cluster extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, { children: readonly object[]; generated: { password: object }; remembers: true }>} props
   */
  constructor(scope, id, { metadata: { name }, spec, observed, generated, status }) {
    super(scope, id);
    const labels = selectorLabels(crd, name);
    const bySerial = (/** @type {string} */ kind) =>
      new Map(observed.filter((one) => one.kind === kind).map((one) => [serialOf(one.metadata.name), one]));
    const [claims, jobs, pods] = ['PersistentVolumeClaim', 'Job', 'Pod'].map(bySerial);
    const primary = serialOf(status.currentPrimary ?? '');
    // An instance whose claim is deleted is lost: another one joins, under a serial that was never used.
    const serials = [...new Set([...claims.keys(), ...jobs.keys()])]
      .filter((serial) => !claims.get(serial)?.metadata.deletionTimestamp)
      .sort((a, b) => Number(b === primary) - Number(a === primary) || a - b);
    const latest = Math.max(status.latestGeneratedNode ?? 0, ...serials);
    if (latest > 0 && !serials[0])
      throw new OperatorError({ reason: 'DataLost', message: 'No claim is left' });
    const isCalm = serials[0] === primary && serials.every((serial) => isReady(pods.get(serial)));
    const outdated = serials.filter((serial) => pods.get(serial)?.isCurrent === false && !jobs.has(serial));
    let replaced = outdated.find((serial) => !isReady(pods.get(serial)));
    // One step at a time; the primary comes first in the list, so it is replaced last, and never removed.
    if (latest === 0 || (isCalm && serials.length < spec.instances)) serials.push(latest + 1);
    else if (isCalm && serials.length > spec.instances) serials.pop();
    else if (isCalm) replaced = outdated.at(-1);
    for (const [suffix, role] of Object.entries({ rw: 'primary', ro: 'replica', r: undefined }))
      new ApiObject(this, suffix, {
        ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: `${name}-${suffix}` } },
        spec: { selector: { ...labels, role }, ports: [{ name: 'postgres', port: 5432 }] },
      });
    new ApiObject(this, 'Budget', {
      ...{ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: `${name}-primary` } },
      spec: { minAvailable: 1, selector: { matchLabels: { ...labels, role: 'primary' } } },
    });
    for (const serial of serials) {
      const metadata = { name: `${name}-${serial}` };
      const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: metadata.name } }];
      const volumeMounts = [{ name: 'data', mountPath: '/var/lib/postgresql/data' }];
      const env = [{ name: 'PASSWORD', valueFrom: { secretKeyRef: generated.keys.password } }];
      const container = { name: 'postgres', image: spec.imageName, env, volumeMounts };
      const run = (/** @type {string} */ verb) => ({ volumes, containers: [{ ...container, args: [verb] }] });
      // The claim says that its data is there, so that its Job never runs again, whatever is lost beside it.
      const isInitialized = claims.get(serial)?.metadata.annotations?.[INITIALIZED] === 'true';
      const annotations = isInitialized || pods.has(serial) ? { [INITIALIZED]: 'true' } : {};
      new ApiObject(this, `Claim${serial}`, {
        ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { ...metadata, annotations } },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: spec.storageSize } } },
      });
      if (serial === replaced) continue;
      const role = serial === primary ? 'primary' : 'replica';
      const pod = new ApiObject(this, `Pod${serial}`, {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, labels: { ...labels, role } } },
        spec: run('run'),
      });
      if (isInitialized || (pods.has(serial) && !jobs.has(serial))) continue;
      const verb = serial === 1 ? 'init' : 'join';
      const job = new ApiObject(this, `Job${serial}`, {
        ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: `${metadata.name}-${verb}` } },
        spec: { template: { spec: { restartPolicy: 'Never', ...run(verb) } } },
      });
      pod.addDependency(job);
    }
  }
}

export const cluster = defineKind({
  ...{ crd, children, construct: Cluster, observes: true, remembers: true },
  generated: {
    password: { length: 64 },
    uri: { text: ({ cr, values }) => `postgresql://app:${values.password}@${cr.metadata.name}-rw:5432/app` },
    pgpass: { text: ({ cr, values }) => `${cr.metadata.name}-rw:5432:app:app:${values.password}` },
  },
  status: ({ cr, children, last = {}, now }) => {
    const { instances, imageName, failoverDelay } = cr.spec;
    const serials = children.map(({ metadata }) => serialOf(metadata.name));
    const pods = children.filter((child) => child.kind === 'Pod');
    const ready = pods.flatMap((pod) => (isReady(pod) ? [pod.metadata.name] : [])).sort();
    // Where the status was lost, the label of its Pod has the primary.
    const labelled = pods.find(({ metadata }) => metadata.labels?.role === 'primary')?.metadata.name;
    const before = last.currentPrimary ?? labelled ?? ready[0];
    const isFailing = before !== undefined && !ready.includes(before);
    const since = last.currentPrimaryFailingSince ?? now.toISOString();
    const end = new Date(Date.parse(since) + failoverDelay * 1_000);
    const currentPrimary = isFailing && end <= now ? (ready[0] ?? before) : before;
    const isDone = pods.length === instances && pods.every((pod) => isReady(pod) && pod.image === imageName);
    const message = `${ready.length} of ${instances} instances are ready`;
    return {
      fields: {
        ...{ instances: pods.length, readyInstances: ready.length },
        latestGeneratedNode: Math.max(last.latestGeneratedNode ?? 0, ...serials),
        ...(currentPrimary && { currentPrimary }),
        ...(isFailing && currentPrimary === before && { currentPrimaryFailingSince: since }),
      },
      ...(isFailing && end > now && { requeueAt: end }),
      ...(!isDone && { readiness: { phase: 'progressing', reason: 'RollingOut', message } }),
    };
  },
});
