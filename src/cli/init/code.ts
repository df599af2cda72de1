import { CHILDREN, has } from './design.js';
import type { Child, Design } from './design.js';
import { fieldsOf, nameRule, specRules } from './fields.js';
import type { Names } from './names.js';
import { podFunction, serverPod, taskPod } from './pod.js';
import type { Members } from './pod.js';
import { code, Noted, onLines } from './source.js';
import type { Source } from './source.js';

/** What code is written of. */
export interface Plan {
  readonly names: Names;
  readonly design: Design;
  /** The name by which modules import this package. */
  readonly library: string;
}

/** `src/crd.ts` */
export function crdModule({ names, design, library }: Plan): string {
  const fields = fieldsOf(design, names);
  const required = fields.filter(({ isRequired }) => isRequired).map(({ name }) => name);
  const rules = specRules(design);
  const columns = fields.flatMap(({ name, column }): Source[] =>
    column ? [{ name: column[0], type: column[1], jsonPath: `.spec.${name}` }] : [],
  );
  const props: Source = {
    group: names.group,
    kind: names.kind,
    description: `A ${names.kind}.`,
    spec: {
      type: 'object',
      description: `What the ${names.kind} is like.`,
      ...(required.length > 0 && { required }),
      ...(rules !== undefined && { 'x-kubernetes-validations': rules }),
      properties: Object.fromEntries(fields.map(({ name, schema }) => [name, schema])),
    },
    ...(columns.length > 0 && { columns }),
    rules: [nameRule(design)],
  };
  return `import { defineCrd } from '${library}';

export const crd = defineCrd(${onLines(props)});
`;
}

/** The module of the construct. */
export function constructModule({ names, design, library }: Plan): string {
  const { kind } = names;
  const isShared = design.workloads.length > 1;
  const needsLabels = design.workloads.length > 0;
  const needsHash = has(design, 'ConfigMap') && design.server !== undefined;
  const usesSpec = fieldsOf(design, names).length > 0;
  return `${needsHash ? `import { hash } from 'node:crypto';\n` : ''}import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
${needsLabels ? `import { selectorLabels } from '${library}';\n` : ''}import type { PropsOf${isShared ? ', SpecOf' : ''} } from '${library}';
import ${needsLabels ? '' : 'type '}{ crd } from './crd.ts';

/** The objects that one ${kind} stands for. */
export class ${kind} extends Construct {
  constructor(scope: Construct, id: string, { metadata: { name }${usesSpec ? ', spec' : ''} }: PropsOf<typeof crd>) {
    super(scope, id);
${constants(design)}${design.children.map((child) => object(child, design)).join('\n')}  }
}
${podFunction(design, 'SpecOf<typeof crd>')}`;
}

function constants(design: Design): string {
  const lines = [
    ...(design.workloads.length > 0 ? ['const labels = selectorLabels(crd, name);'] : []),
    ...(design.workloads.length > 1 && design.server
      ? ["const server = { ...labels, 'app.kubernetes.io/component': 'server' };"]
      : []),
    ...(has(design, 'ConfigMap') && design.server
      ? ["const configHash = hash('sha256', JSON.stringify(Object.entries(spec.config).sort()));"]
      : []),
  ];
  return lines.map((line) => `    ${line}\n`).join('') + (lines.length > 0 ? '\n' : '');
}

function object(child: Design['children'][number], design: Design): string {
  const props: Source = {
    apiVersion: CHILDREN[child],
    kind: child,
    metadata: { name: code('name') },
    ...membersOf(child, design),
  };
  return `    new ApiObject(this, '${child}', ${onLines(props, '    ')});\n`;
}

/** `src/kind.ts` */
export function kindModule({ names, design, library }: Plan): string {
  const children = design.children.map((kind): Source => ({
    ...{ apiVersion: CHILDREN[kind], kind },
    // The template of a Job can't be changed.
    ...(kind === 'Job' && { recreate: true }),
  }));
  const props: Source = { crd: code('crd'), construct: code(names.kind), children };
  return `import { defineKind } from '${library}';
import { crd } from './crd.ts';
import { ${names.kind} } from './${names.file}.ts';

export const ${names.variable} = defineKind(${onLines(props)});
`;
}

/** `reconstruct.config.mjs` */
export function configModule({ names }: Plan): string {
  return `import { ${names.variable} } from './src/kind.ts';

export default { builtIn: false, kinds: [${names.variable}] };
`;
}

/** What an object has beside its type and its name. */
function membersOf(child: Child, design: Design): Members {
  if (child === 'ServiceAccount') return {};
  if (child === 'ConfigMap') return { data: code('spec.config') };
  return { spec: SPECS[child](design) };
}

const SPECS: Readonly<Record<Exclude<Child, 'ServiceAccount' | 'ConfigMap'>, (design: Design) => Members>> = {
  PersistentVolumeClaim: claim,
  Service: (design) => ({
    ...(isHeadless(design) && { clusterIP: new Noted('Each pod has a name of its own.', 'None') }),
    selector: serverLabels(design),
    ports: [{ name: 'http', port: code('spec.port'), targetPort: 'http', protocol: 'TCP' }],
  }),
  Deployment: (design) => ({
    ...(has(design, 'PersistentVolumeClaim')
      ? { replicas: 1, strategy: new Noted('The volume is mounted on one node.', { type: 'Recreate' }) }
      : replicas(design)),
    ...pods(design),
  }),
  StatefulSet: (design) => ({
    ...replicas(design),
    ...(has(design, 'Service') && { serviceName: code('name') }),
    ...pods(design),
    volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim() }],
  }),
  DaemonSet: pods,
  Job: (design) => ({ template: taskTemplate(design, 'Job') }),
  CronJob: (design) => ({
    schedule: code('spec.schedule'),
    concurrencyPolicy: 'Forbid',
    jobTemplate: { spec: { template: taskTemplate(design, 'CronJob') } },
  }),
  HorizontalPodAutoscaler: ({ server = 'Deployment' }) => ({
    scaleTargetRef: { apiVersion: 'apps/v1', kind: server, name: code('name') },
    minReplicas: code('spec.minReplicas'),
    maxReplicas: code('spec.maxReplicas'),
    metrics: [
      {
        type: 'Resource',
        resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } },
      },
    ],
  }),
  PodDisruptionBudget: (design) => ({
    maxUnavailable: 1,
    selector: { matchLabels: serverLabels(design) },
  }),
  Ingress: () => ({
    rules: [
      {
        host: code('spec.host'),
        http: {
          paths: [
            {
              path: '/',
              pathType: 'Prefix',
              backend: { service: { name: code('name'), port: { name: 'http' } } },
            },
          ],
        },
      },
    ],
  }),
  NetworkPolicy: (design) => ({
    podSelector: { matchLabels: code('labels') },
    policyTypes: ['Ingress'],
    ingress: has(design, 'Service')
      ? [{ ports: [{ port: 'http', protocol: 'TCP' }] }]
      : new Noted('Nothing comes in.', []),
  }),
};

function claim(): Members {
  return {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: code('spec.storage') } },
  };
}

/** With an autoscaler the number is that one's. */
function replicas(design: Design): Members {
  return has(design, 'HorizontalPodAutoscaler') ? {} : { replicas: code('spec.replicas') };
}

/** An Ingress needs a Service with an address. */
function isHeadless(design: Design): boolean {
  return design.server === 'StatefulSet' && !has(design, 'Ingress');
}

/** The pods of what serves, and not those of tasks. */
function serverLabels({ workloads }: Design): Source {
  return code(workloads.length > 1 ? 'server' : 'labels');
}

function pods(design: Design): Members {
  const labels = serverLabels(design);
  return {
    selector: { matchLabels: labels },
    template: {
      metadata: {
        labels,
        ...(has(design, 'ConfigMap') && {
          annotations: new Noted('Other files are other pods.', { 'config-hash': code('configHash') }),
        }),
      },
      spec: serverPod(design),
    },
  };
}

function taskTemplate(design: Design, child: Child): Members {
  return { metadata: { labels: code('labels') }, spec: taskPod(design, child) };
}
