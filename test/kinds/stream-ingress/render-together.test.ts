import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { sectionsIn } from '../../../src/cli/sections.js';
import type { KindContext } from '../../../src/contract/kind.js';
import { streamIngress as kind } from '../../../src/kinds/stream-ingress/kind.js';
import type { StreamIngress } from '../../../src/kinds/stream-ingress/spec.js';
import type { StreamIngressPolicy } from '../../../src/kinds/stream-ingress/targets.js';
import { render } from '../../../src/render/renderer.js';
import { synth } from '../../../src/cli/synth/synth.js';
import { streamIngress, type Given } from './builders.js';

const examples = new URL('../../../examples/streamingress/', import.meta.url);
const policyFile = fileURLToPath(new URL('admin/policy.yaml', examples));

function together(
  given: readonly Given[],
  policy: StreamIngressPolicy = {},
  context: Partial<KindContext> = {},
) {
  if (!('together' in kind.rendering)) throw new Error('it renders one by one');
  const crs = given.map(streamIngress);
  const { manifests, findings = [] } = kind.rendering.together(crs, { render, policy, ...context });
  return {
    objects: manifests.flatMap(({ objects }) =>
      objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    ),
    findings: findings.map(({ level, of, path = [], message }) => [
      level,
      `${(of as StreamIngress | undefined)?.metadata.name ?? '*'} ${path.join('.')}`,
      message,
    ]),
  };
}

const edge = { name: 'edge', kind: 'Gateway', gateway: 'gateways/edge' } as const;

test('the examples, with their policy, are what a repository can hold', async () => {
  const sources = readdirSync(examples)
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => fileURLToPath(new URL(file, examples)));

  const files = await synth({
    kinds: [kind],
    sources,
    files: { policy: sectionsIn('policy', policyFile, readFileSync(policyFile, 'utf8'), [kind]) },
  });

  const text = files.map(({ name, text }) => `# ${name}\n${text}`).join('\n');
  await expect(text).toMatchFileSnapshot('__snapshots__/examples.yaml');
});

describe('conflicts among them', () => {
  const conflict = (port: string, target: string, other: string) =>
    `spec.listen: ${port} of the target ${target} is asked for by ${other} too; give each its own port`;

  test('are reported for each, and nothing is rendered', () => {
    expect(together([{ name: 'a' }, { name: 'b', namespace: 'other' }])).toEqual({
      objects: [],
      findings: [
        ['error', 'a spec.listen', conflict('9000/TCP', 'default', 'other/b')],
        ['error', 'b spec.listen', conflict('9000/TCP', 'default', 'shop/a')],
      ],
    });
  });

  test('are none between protocols, ports or targets', () => {
    const given = [{ name: 'a' }, { name: 'b', protocol: 'UDP' as const }, { name: 'c', listen: 9001 }];
    const found = together([...given, { name: 'd', className: 'edge' }], {
      ...{ targets: [{ name: 'public' }, edge], defaultClass: 'public' },
    });
    expect(found.findings).toEqual([]);
    expect(found.objects).toEqual([
      ...['ConfigMap tcp-services', 'ConfigMap udp-services', 'Service ingress-nginx-controller'],
      ...['ListenerSet d', 'TCPRoute d'],
    ]);
  });
});

describe('an error at', () => {
  test.each<[string, Given, string]>([
    ['web spec.listen', { listen: 443 }, '443/TCP is reserved'],
    ['web spec.listen', { listen: 8999 }, 'take one of 9000-9009'],
    ['web spec.className', { className: 'other' }, 'there is no class other'],
    ['web metadata.namespace', { namespace: 'other' }, "doesn't serve the namespace other"],
    [
      'web spec.proxyProtocol',
      { className: 'edge', proxyProtocol: { encode: true } },
      'has no PROXY protocol',
    ],
    ['web spec.upstream.port', { className: 'edge', upstream: { port: 'sql' } }, 'give the number'],
  ])('%s: %j', (place, given, message) => {
    const limits = { portRanges: ['9000-9009'], namespaces: ['shop'] };
    const policy = { targets: [{ name: 'public', ...limits }, edge], defaultClass: 'public' };
    expect(together([given], policy).findings).toEqual([['error', place, expect.stringContaining(message)]]);
  });

  test('metadata, where no namespace says where the upstream is', () => {
    const cr = streamIngress();
    const { namespace, ...metadata } = cr.metadata;
    const bare = { ...cr, metadata } as StreamIngress;
    const { together: rendered } = kind.rendering as Extract<typeof kind.rendering, { together: unknown }>;
    expect(rendered([bare], { render }).findings).toMatchObject([{ level: 'error', path: ['metadata'] }]);
    expect(namespace).toBe('shop');
  });

  test('those that are more than the target opens', () => {
    const policy = { targets: [{ name: 'public', maxListeners: 1 }] };
    expect(together([{ name: 'a' }, { name: 'b', listen: 9001 }], policy).findings).toEqual([
      ['error', 'b spec', expect.stringContaining('the target public opens 1 ports, which are taken')],
    ]);
  });
});
