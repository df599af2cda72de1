import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Kind, KindContext, KindFlag } from '../../src/contract/kind.js';
import { helmChart } from '../../src/install/helm/chart.js';
import type { ChartProps } from '../../src/install/helm/values.js';
import { chartOptions } from '../../src/install/helm/values.js';
import { Template } from '../../src/install/helm/template.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { appServiceOfExample } from '../../src/kinds/app-service/example-group.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';

const kinds: readonly Kind[] = [appService, jobWatcher, streamIngress];
const props: ChartProps = {
  ...{ kinds, on: [appService, jobWatcher], image: 'example.com:5000/reconstruct:1', replicas: 2 },
  ...{ version: '1.2.3', oldestKubernetes: '1.34' },
};

function chart(changed: Partial<ChartProps> = {}): Record<string, string> {
  return Object.fromEntries(helmChart({ ...props, ...changed }).map(({ name, text }) => [name, text]));
}

const valuesOf = (changed: Partial<ChartProps> = {}): Record<string, unknown> =>
  parse(chart(changed)['values.yaml']!) as Record<string, unknown>;

const uses = (kind: Kind, changed: Partial<ChartProps> = {}): Record<string, unknown> =>
  Object.fromEntries(
    chartOptions(kind, { ...props, ...changed, namespace: 'ops' }).map(({ flag, ...use }) => [
      flag.name,
      use,
    ]),
  );

describe('helmChart', () => {
  it('is the same each time, and names the oldest Kubernetes with whatever providers append to a version', () => {
    expect(chart()).toEqual(chart());
    expect(parse(chart()['Chart.yaml']!)).toMatchObject({
      ...{ name: 'reconstruct', version: '1.2.3', appVersion: '1.2.3', kubeVersion: '>=1.34.0-0' },
    });
  });

  it('has no word left that only stands for a value', () => {
    for (const [name, text] of Object.entries(chart())) expect(text, name).not.toMatch(/zz[a-z]+\d*zz/);
  });

  it('has what install was given for its default values', () => {
    const digest = `sha256:${'a'.repeat(64)}`;
    expect(
      valuesOf({
        ...{ image: `r.io:5000/a/b@${digest}`, replicas: 3, watchNamespaces: ['shop'], on: [streamIngress] },
        flags: { '--ingress-namespace': 'edge', '--jobwatcher-deletes-per-second': '5' },
        policy: { text: '', parsed: { appservice: { maxSize: 3 } } },
        monitoring: { parts: ['rules'], labels: { release: 'a' }, runbooks: 'https://example.com' },
      }),
    ).toMatchObject({
      ...{ image: { repository: 'r.io:5000/a/b', tag: '', digest }, replicas: 3, watchNamespaces: ['shop'] },
      kinds: { appservice: false, jobwatcher: false, streamingress: true },
      options: { ingressNamespace: 'edge', jobwatcherDeletesPerSecond: 5 },
      policy: { appservice: { maxSize: 3 } },
      monitoring: {
        ...{ serviceMonitor: false, rules: true, dashboard: false },
        ...{ labels: { release: 'a' }, runbooks: 'https://example.com' },
      },
    });
    expect(valuesOf().image).toEqual({ repository: 'example.com:5000/reconstruct', tag: '1', digest: '' });
  });

  it('knows every value in its schema', () => {
    const { properties } = JSON.parse(chart()['values.schema.json']!) as { properties: object };
    expect(Object.keys(properties)).toEqual([...Object.keys(valuesOf()), 'global']);
  });

  it('calls kinds of one name by their groups too', () => {
    const both = [appService, appServiceOfExample];
    expect(valuesOf({ kinds: both, on: both }).kinds).toEqual({
      'appservice.kosmos.io': true,
      'appservice.app.example.com': true,
    });
  });
});

describe('an option', () => {
  it('is tried out on the rights: what it names, what it adds, and what it has nothing to do with', () => {
    expect(uses(streamIngress)).toEqual({
      '--ingress-namespace': { use: 'names', byDefault: 'ingress-nginx' },
      '--ingress-service': { use: 'names', byDefault: 'ingress-nginx-controller' },
      '--tcp-services-configmap': { use: 'names', byDefault: 'tcp-services' },
      '--udp-services-configmap': { use: 'names', byDefault: 'udp-services' },
      '--ingress-controller': { use: 'adds', forms: ['Deployment/*', 'DaemonSet/*'] },
    });
    for (const use of Object.values(uses(jobWatcher))) expect(use).toEqual({ use: 'free' });
  });

  it('stays as it is where the policy may name the same, and so does the policy', () => {
    const policy = {
      text: '',
      parsed: { streamingress: { targets: [{ name: 'edge', ingressNamespace: 'edge' }] } },
    };
    for (const use of Object.values(uses(streamIngress, { policy }))) expect(use).toEqual({ use: 'fixed' });
    const made = chart({ policy, flags: { '--ingress-namespace': 'here' } });
    expect(made['templates/_helpers.tpl']).toContain('- "--ingress-namespace=here"');
    expect(made['templates/access.yaml']).toMatch(/namespace: edge\n[^]*namespace: here\n/);
    const schema = JSON.parse(made['values.schema.json']!) as { properties: Record<string, object> };
    expect(schema.properties.options).not.toHaveProperty('properties.ingressNamespace');
    expect(schema.properties.policy).toMatchObject({
      required: ['streamingress'],
      properties: { streamingress: { const: policy.parsed.streamingress } },
    });
  });

  it('stays as it is where its effect on rights is more than a name', () => {
    const flag: KindFlag = { name: '--reach', value: 'names', description: '', list: true };
    const watch = appService.controllers({ render: () => [] })[0]?.watches[0];
    const kind = {
      ...jobWatcher,
      flags: [flag],
      controllers: ({ flags = {} }: KindContext) => [
        { watches: [{ ...watch, ...(flags['--reach'] && { namespaces: flags['--reach'] }) }] },
      ],
    } as unknown as Kind;
    expect(uses(kind)).toEqual({ '--reach': { use: 'fixed' } });
  });
});

describe('Template', () => {
  const template = new Template(new Map([['zzaazz', '$.a']]));

  it('quotes what a value stands for, alone or within a text', () => {
    const object = { whole: 'zzaazz', part: '100%: zzaazz!', other: 'a', list: ['zzaazz'] };
    expect(template.write(template.filled(object))).toBe(
      [
        'whole: {{ $.a | quote }}',
        'part: {{ printf "100%%: %s!" ($.a) | quote }}',
        'other: a',
        'list:',
        '  - {{ $.a | quote }}',
        '',
      ].join('\n'),
    );
  });

  it('leaves text alone that looks like an expression', () => {
    expect(template.write({ a: 'x {{ y }}' })).toBe('a: x {{ "{{" }} y }}\n');
  });

  it('indents lines where they stand, and tells them by how much', () => {
    const lines = template.lines((indent) => `if\nby: ${indent}\nend`);
    expect(template.write({ a: { b: 1, ...lines } })).toBe('a:\n  b: 1\n  if\n  by: 2\n  end\n');
  });
});
