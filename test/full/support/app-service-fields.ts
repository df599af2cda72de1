import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';
import { appServiceOptions } from './app-service-options.js';
import type { FieldEdit } from './field-edit.js';

const base: AppServiceSpec = { size: 0, image: 'example.com/web:1' };

type Port = NonNullable<AppServiceSpec['ports']>[number];
type Variable = NonNullable<AppServiceSpec['envs']>[number];
type Source = keyof NonNullable<Variable['valueFrom']>;

const withPort = (port: Partial<Port>): AppServiceSpec => ({ ...base, ports: [{ port: 80, ...port }] });
const withResources = (resources: object): AppServiceSpec => ({ ...base, resources });
const withEnv = (variable: Partial<Variable>): AppServiceSpec => ({
  ...base,
  envs: [
    { name: 'FIRST', value: '1' },
    { name: 'VARIABLE', ...variable },
  ],
});

function portField(name: keyof Port, set: Partial<Port>, changed: Partial<Port>): FieldEdit {
  return { path: `ports.[].${name}`, without: withPort({}), set: withPort(set), changed: withPort(changed) };
}

/** A field of a source; `others` is what the source needs besides it. */
function sourceField(source: Source, field: string, others: object, values: readonly unknown[]): FieldEdit {
  const variable = (inner: object): AppServiceSpec =>
    withEnv({ valueFrom: { [source]: { ...others, ...inner } } });
  const [set, changed] = values.map((value) => variable({ [field]: value }));
  // An env file lies in a volume, which an AppService's pod doesn't have.
  const refused = source === 'fileKeyRef';
  const optional = ['optional', 'divisor', 'containerName'].includes(field) && !refused;
  return {
    path: `envs.[].valueFrom.${source}.${field}`,
    without: optional ? variable({}) : withEnv({}),
    set: set!,
    changed: changed!,
    ...(refused && { refusedWith: 'Invalid' }),
  };
}

const keyRef = { name: 'settings', key: 'level' };
const resourceRef = { resource: 'limits.memory' };
const fileRef = { volumeName: 'files', path: 'app.env', key: 'LEVEL' };

/** Every field of the spec of an AppService. */
export const appServiceFields: readonly FieldEdit[] = [
  { path: 'size', without: base, set: { ...base, size: 1 }, changed: { ...base, size: 2 } },
  {
    ...{ path: 'image', without: base },
    set: { ...base, image: 'example.com/web:2' },
    changed: { ...base, image: 'example.com/web:3' },
  },
  portField('name', { name: 'http' }, { name: 'web' }),
  portField('protocol', { protocol: 'UDP' }, { protocol: 'SCTP' }),
  portField('appProtocol', { appProtocol: 'http' }, { appProtocol: 'kubernetes.io/h2c' }),
  { path: 'ports.[].port', without: base, set: withPort({}), changed: withPort({ port: 81 }) },
  portField('targetPort', { targetPort: 8080 }, { targetPort: 'web' }),
  portField('nodePort', { nodePort: 30_010 }, { nodePort: 30_011 }),
  {
    ...{ path: 'resources.limits.*', without: base },
    set: withResources({ limits: { cpu: 1 } }),
    changed: withResources({ limits: { cpu: '500m', memory: '64Mi' } }),
  },
  {
    ...{ path: 'resources.requests.*', without: withResources({ limits: { cpu: 1 } }) },
    set: withResources({ limits: { cpu: 1 }, requests: { cpu: '100m' } }),
    changed: withResources({ limits: { cpu: 1 }, requests: { cpu: '200m', memory: '32Mi' } }),
  },
  {
    ...{ path: 'resources.claims.[].name', without: base, refusedWith: 'Invalid' },
    set: withResources({ claims: [{ name: 'gpu' }] }),
    changed: withResources({ claims: [{ name: 'other' }] }),
  },
  {
    ...{ path: 'resources.claims.[].request', without: base, refusedWith: 'Invalid' },
    set: withResources({ claims: [{ name: 'gpu', request: 'one' }] }),
    changed: withResources({ claims: [{ name: 'gpu', request: 'two' }] }),
  },
  { path: 'envs.[].name', without: base, set: withEnv({}), changed: withEnv({ name: 'RENAMED' }) },
  {
    path: 'envs.[].value',
    without: withEnv({}),
    set: withEnv({ value: '1' }),
    changed: withEnv({ value: '2' }),
  },
  sourceField('fieldRef', 'apiVersion', { fieldPath: 'metadata.uid' }, ['v1', undefined]),
  sourceField('fieldRef', 'fieldPath', {}, ['metadata.name', 'status.podIP']),
  sourceField('resourceFieldRef', 'containerName', resourceRef, ['tested', undefined]),
  sourceField('resourceFieldRef', 'resource', {}, ['limits.memory', 'requests.memory']),
  sourceField('resourceFieldRef', 'divisor', resourceRef, ['1Mi', 1]),
  ...(['configMapKeyRef', 'secretKeyRef'] as const).flatMap((source) => [
    sourceField(source, 'name', { key: 'level' }, ['settings', 'others']),
    sourceField(source, 'key', { name: 'settings' }, ['level', 'other']),
    sourceField(source, 'optional', keyRef, [true, false]),
  ]),
  sourceField('fileKeyRef', 'volumeName', { path: 'app.env', key: 'LEVEL' }, ['files', 'others']),
  sourceField('fileKeyRef', 'path', { volumeName: 'files', key: 'LEVEL' }, ['app.env', 'other.env']),
  sourceField('fileKeyRef', 'key', { volumeName: 'files', path: 'app.env' }, ['LEVEL', 'OTHER']),
  sourceField('fileKeyRef', 'optional', fileRef, [true, false]),
  ...appServiceOptions,
];
