import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { AnyObject } from '../../src/contract/object.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { renderList, parseResourceList } from '../../src/cli/synth/resource-list.js';
import type { RenderedList, RenderListOptions, Result } from '../../src/cli/synth/resource-list.js';

const kinds = [appService, streamIngress, jobWatcher];

interface Written {
  readonly items: readonly AnyObject[];
  readonly results?: readonly Result[];
}

/** A custom resource as a part of a list: with four spaces in front. */
const app = (name: string, more = '', spec = '{ size: 1, image: nginx }'): string =>
  `  - apiVersion: kosmos.io/v1
    kind: AppService
    metadata:
      name: ${name}
      namespace: shop
${more}    spec: ${spec}
`;

const list = (items: string, more = ''): string =>
  `apiVersion: config.kubernetes.io/v1
kind: ResourceList
${more}items:
${items}`;

const annotations = (...pairs: readonly [string, string][]): string =>
  `      annotations:\n${pairs.map(([name, value]) => `        ${name}: '${value}'\n`).join('')}`;

const LOCAL = ['config.kubernetes.io/local-config', 'true'] as const;
const file = (path: string, index = 0): [string, string][] => [
  ['internal.config.kubernetes.io/path', path],
  ['internal.config.kubernetes.io/index', String(index)],
];

async function run(text: string, options: Partial<RenderListOptions> = {}): Promise<RenderedList & Written> {
  const rendered = await renderList(parseResourceList(text), { kinds, ...options });
  return { ...rendered, ...(parse(rendered.text) as Written) };
}

const names = (items: readonly AnyObject[]): string[] =>
  items.map(({ kind, metadata }) => `${kind} ${metadata.name}`);

/** With its comment where kustomize puts it. */
const OTHER = `  - # Why it is here.
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: other
    data:
      octal: 0644
      quoted: "yes" # kept
`;

test('what is rendered takes the place of its custom resource, and the rest stays as it is written', async () => {
  const { text, items, problems } = await run(list(app('web') + OTHER + app('api')));

  expect(problems).toEqual([]);
  expect(names(items)).toEqual(['Deployment web', 'ConfigMap other', 'Deployment api']);
  expect(text).toContain(OTHER);
});

test('a custom resource for tools alone stays, and what is rendered follows it, in a file beside it', async () => {
  const { items } = await run(
    list(
      app(
        'web',
        annotations([...LOCAL], ...file('apps/web.yaml', 3)),
        '{ size: 1, image: nginx, ports: [{ port: 80 }] }',
      ),
    ),
  );

  expect(names(items)).toEqual(['AppService web', 'Deployment web', 'Service web']);
  expect(items.map(({ metadata }) => metadata.annotations)).toMatchObject([
    Object.fromEntries(file('apps/web.yaml', 3)),
    Object.fromEntries(file('apps/shop.appservice.kosmos.io.web.yaml', 0)),
    Object.fromEntries(file('apps/shop.appservice.kosmos.io.web.yaml', 1)),
  ]);
  expect(items[1]!.metadata.annotations).not.toHaveProperty('config.kubernetes.io/local-config');
});

test('a second run brings up to date what the first has made, where it is, and removes what isn’t rendered any more', async () => {
  const local = annotations([...LOCAL], ...file('apps/web.yaml'));
  const first = await run(list(app('web', local, '{ size: 1, image: nginx, ports: [{ port: 80 }] }')));
  const again = await run(first.text);
  const moved = first.text
    .replaceAll('shop.appservice.kosmos.io.web.yaml', 'moved.yaml')
    .replace('ports: [ { port: 80 } ]', 'ports: []')
    .replace('size: 1', 'size: 2');

  const edited = await run(moved);

  expect(again.text).toBe(first.text);
  expect(names(edited.items)).toEqual(['AppService web', 'Deployment web']);
  expect(edited.items[1]).toMatchObject({
    metadata: { annotations: { 'internal.config.kubernetes.io/path': 'apps/moved.yaml' } },
    spec: { replicas: 2 },
  });
});

test('an object that another writer has given is never replaced by one that is rendered', async () => {
  const given = `  - apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: web
      namespace: shop
`;

  const { text, items, results } = await run(list(app('web') + given));

  expect(names(items)).toEqual(['AppService web', 'Deployment web']);
  expect(text).toContain(given);
  expect(results).toMatchObject([
    {
      severity: 'error',
      message: 'Deployment shop/web is rendered here, and given as well; rename or remove one of them',
      resourceRef: { kind: 'Deployment', name: 'web' },
      field: { path: 'metadata.name' },
    },
  ]);
});

test('every problem is a result with object, field and file, and nothing is rendered', async () => {
  const text = list(
    app(
      'web',
      annotations(...file('apps/web.yaml', 1)),
      '{ size: many, image: nginx, ports: [{ port: 99999 }] }',
    ) + app('api'),
  );

  const { items, results, problems } = await run(text);

  expect(names(items)).toEqual(['AppService web', 'AppService api']);
  const common = {
    severity: 'error',
    resourceRef: { apiVersion: 'kosmos.io/v1', kind: 'AppService', namespace: 'shop', name: 'web' },
    file: { path: 'apps/web.yaml', index: 1 },
  };
  expect(problems).toHaveLength(2);
  for (const [path, value] of [
    ['spec.ports[0].port', '99999'],
    ['spec.size', '"many"'],
  ] as const)
    expect(results).toContainEqual({
      ...common,
      field: { path },
      message: expect.stringContaining(`${path}: ${value} is `) as string,
    });
});

test('a functionConfig that is a custom resource is rendered behind the items, once', async () => {
  const config = `functionConfig:\n${app('web').replace('  - ', '    ').replaceAll(/^ {2}/gm, '')}`;

  expect(names((await run(list(OTHER, config))).items)).toEqual(['ConfigMap other', 'Deployment web']);
  // kustomize gives it to generators as an item too.
  const asItem = await run(list(app('web', annotations([...LOCAL])), config));
  expect(names(asItem.items)).toEqual(['AppService web', 'Deployment web']);
});

test('what many share is rendered behind the items, and brought up to date in its file', async () => {
  const stream = (
    name: string,
    listen: number,
  ): string => `  - apiVersion: nginx-stream.jeffthecoder.xyz/v1beta1
    kind: StreamIngress
    metadata:
      name: ${name}
      namespace: shop
${annotations([...LOCAL], ...file('streams.yaml'))}    spec: { listen: ${listen}, upstream: { service: db, port: 5432 } }
`;

  const first = await run(list(stream('a', 9000) + OTHER));
  const second = await run(first.text.replace(OTHER, ''));

  expect(first.items[0]).toMatchObject({ kind: 'StreamIngress' });
  expect(first.items.length).toBeGreaterThan(2);
  expect(names(second.items)).toEqual(names(first.items).filter((name) => name !== 'ConfigMap other'));
  expect(second.problems).toEqual([]);
});

test.each([
  ['nothing: at all: here', 'this is not YAML'],
  ['apiVersion: v1\nkind: List\nitems: []\n', 'holds "List" of "v1"; give a ResourceList'],
  ['\n', '<stdin>: standard input is empty; give a ResourceList'],
  [list('').replace('items:', 'items: 3'), 'items is not a list'],
])('%j is refused', (text, message) => {
  expect(() => parseResourceList(text)).toThrow(message);
});

test('documents that hold nothing stand around a list, and another list is refused', () => {
  const list = 'apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n';
  expect(parseResourceList(`# c\n---\n${list}---\n`).items).toEqual([]);
  expect(() => parseResourceList(`${list}---\n${list}`)).toThrow(
    '<stdin>: holds several documents; give one',
  );
});
