import { describe, expect, test } from 'vitest';
import { operatorContext } from '../../../src/cli/diff/operator-context.js';
import type { OperatorContextProps } from '../../../src/cli/diff/operator-context.js';
import { OperatorError } from '../../../src/contract/error.js';
import { installManifests } from '../../../src/install/manifests.js';
import type { InstallProps } from '../../../src/install/props.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../../src/kinds/stream-ingress/kind.js';
import { render } from '../../../src/synth/render.js';
import { MemoryCluster } from '../../install/memory-cluster.js';

const kinds = [appService, jobWatcher, streamIngress];

/** What `install` makes. */
function installed(props: Partial<InstallProps>) {
  return installManifests({ namespace: 'ops', image: 'reconstruct:1', kinds, replicas: 1, ...props });
}

function contextIn(cluster: MemoryCluster, given: Partial<OperatorContextProps> = {}) {
  const warnings: string[] = [];
  const warn = (line: string) => void warnings.push(line);
  const policyOf = () => Promise.resolve(undefined);
  return { warnings, contextFor: operatorContext({ cluster, render, policyOf, flags: {}, warn, ...given }) };
}

const anything = expect.any(Function) as unknown;

const { apiVersion, kind } = appService.type;
const metadata = { name: 'web', namespace: 'shop' };
const cr = { apiVersion, kind, metadata, spec: { size: 4, image: 'web:1' } };
const route = { parentRefs: [{ name: 'public' }] };
const routed = { ...cr, spec: { ...cr.spec, ports: [{ port: 80 }], route } };

describe('what a kind is judged with', () => {
  test('is the namespace, the flags and the namespaces of the operator that is installed', async () => {
    const flags = { '--ingress-namespace': 'edge', '--jobwatcher-admin-namespaces': ['ops', 'tools'] };
    const cluster = new MemoryCluster(installed({ flags, watchNamespaces: ['shop', 'team'] }));
    const { contextFor, warnings } = contextIn(cluster);

    expect(await contextFor(jobWatcher, ['shop'])).toMatchObject({
      flags: { '--jobwatcher-admin-namespaces': ['ops', 'tools'] },
      ...{ operatorNamespace: 'ops', namespaces: ['shop', 'team'] },
    });
    expect((await contextFor(streamIngress, ['shop'])).flags).toEqual({ '--ingress-namespace': 'edge' });
    expect(warnings).toEqual([]);
  });

  test('is what the command line says, where it says something', async () => {
    const flags = { '--ingress-namespace': 'edge', '--ingress-service': 'proxy' };
    const cluster = new MemoryCluster(installed({ flags, watchNamespaces: ['shop'] }));
    const given = { flags: { '--ingress-namespace': 'mine' }, watchNamespaces: ['a'] };
    const { contextFor } = contextIn(cluster, given);

    expect(await contextFor(streamIngress, ['shop'])).toMatchObject({
      flags: { '--ingress-namespace': 'mine', '--ingress-service': 'proxy' },
      ...{ operatorNamespace: 'ops', namespaces: ['a'] },
    });
  });

  test('is what an installation with defaults would have, where there is none', async () => {
    const lookalike = installed({}).map((object) => ({
      ...object,
      metadata: { ...object.metadata, labels: { 'app.kubernetes.io/name': 'reconstruct' } },
    }));
    const { contextFor, warnings } = contextIn(new MemoryCluster(lookalike));
    expect(await contextFor(jobWatcher, ['shop'])).toEqual({
      ...{ render: anything, flags: {}, operatorNamespace: 'reconstruct-system' },
    });
    expect(warnings).toEqual([]);
  });

  test('is of the operator that looks after the kind, and there', async () => {
    const cluster = new MemoryCluster([
      ...installed({ namespace: 'a', kinds: [appService] }),
      ...installed({ namespace: 'b', kinds: [jobWatcher], watchNamespaces: ['shop'] }),
      ...installed({ namespace: 'c', kinds: [jobWatcher], watchNamespaces: ['team'] }),
    ]);
    const { contextFor, warnings } = contextIn(cluster);
    expect(await contextFor(appService, ['team'])).toMatchObject({ operatorNamespace: 'a' });
    expect(await contextFor(jobWatcher, ['team'])).toMatchObject({ operatorNamespace: 'c' });
    expect(await contextFor(streamIngress, ['team'])).toMatchObject({
      operatorNamespace: 'reconstruct-system',
    });
    expect(warnings).toEqual([]);
  });

  test('is told where there are several, unless one is named', async () => {
    const cluster = new MemoryCluster([
      ...installed({ namespace: 'b' }),
      ...installed({ namespace: 'a', watchNamespaces: ['shop'] }),
    ]);
    const { contextFor, warnings } = contextIn(cluster);
    expect(await contextFor(jobWatcher, ['shop'])).toMatchObject({ operatorNamespace: 'a' });
    expect(warnings).toEqual([
      'jobwatcher.batch.my.github.com is looked after by operators in a, b: the one in a is taken; ' +
        'name one with --operator-namespace',
    ]);

    const named = contextIn(cluster, { operatorNamespace: 'b' });
    expect(await named.contextFor(jobWatcher, ['shop'])).toEqual({
      ...{ render: anything, flags: {}, operatorNamespace: 'b' },
    });
    expect(named.warnings).toEqual([]);
  });

  describe('by somebody who may not look for it', () => {
    const forbidden = () =>
      Promise.reject(new OperatorError({ reason: 'Forbidden', message: 'List deployments: not you' }));
    const closed = () => Object.assign(new MemoryCluster(), { list: forbidden, find: forbidden });

    test('is as in an installation with defaults, and said', async () => {
      const { contextFor, warnings } = contextIn(closed());
      expect(await contextFor(jobWatcher, ['shop'])).toMatchObject({
        operatorNamespace: 'reconstruct-system',
      });
      await contextFor(streamIngress, ['shop']);
      expect(warnings).toEqual([
        "Which operator is installed can't be seen (List deployments: not you): one in reconstruct-system, " +
          'without flags, that forbids nothing, is assumed; say more with --operator-namespace, --policy and the flags that "run" has',
      ]);
    });

    test("isn't said of a kind without flags whose policy is given, nor where it is named", async () => {
      const { contextFor, warnings } = contextIn(closed(), { policy: {} });
      await contextFor(appService, ['shop']);
      const named = contextIn(closed(), { operatorNamespace: 'ops' });
      expect(await named.contextFor(jobWatcher, ['shop'])).toMatchObject({ operatorNamespace: 'ops' });
      expect([...warnings, ...named.warnings]).toEqual([]);
    });

    test('is said of a kind that a policy may restrict, unless that is given', async () => {
      const { contextFor, warnings } = contextIn(closed());
      const { render: unrestricted } = await contextFor(appService, ['shop']);
      expect(unrestricted(appService, routed)).toHaveLength(3);
      const named = contextIn(closed(), { operatorNamespace: 'ops' });
      await named.contextFor(appService, ['shop']);
      expect([...warnings, ...named.warnings]).toEqual([
        expect.stringContaining('that forbids nothing, is assumed'),
        "By which policy the operator in ops works can't be seen (List deployments: not you): nothing is taken to be " +
          'forbidden; give it with --policy',
      ]);
    });
  });

  describe("is the kind's section of the policy, too,", () => {
    const restricted = () => new MemoryCluster(installed({ policy: { text: '', parsed: {} } }));
    const allowed = { appservice: { maxSize: 3 } };

    test('that is given', async () => {
      const { contextFor } = contextIn(restricted(), {
        ...{ policy: allowed, policyOf: () => Promise.reject(new Error('asked for')) },
      });
      const { policy, render: restrictedRender } = await contextFor(appService, []);
      expect(policy).toEqual({ maxSize: 3 });
      expect(() => restrictedRender(appService, cr)).toThrow('maxSize');
      expect(await contextFor(jobWatcher, [])).not.toHaveProperty('policy');
    });

    test('or that of the operator, for a kind that has one', async () => {
      const asked: string[] = [];
      const policyOf: OperatorContextProps['policyOf'] = ({ namespace }) => {
        asked.push(namespace);
        return Promise.resolve(allowed);
      };
      const { contextFor } = contextIn(restricted(), { policyOf });
      await contextFor(jobWatcher, []);
      expect(asked).toEqual([]);
      const { policy, render: restrictedRender } = await contextFor(appService, []);
      expect({ policy, asked }).toEqual({ policy: { maxSize: 3 }, asked: ['ops'] });
      expect(() => restrictedRender(appService, cr)).toThrow('maxSize');
    });

    test('or an empty one, by which an operator without a policy refuses routes', async () => {
      const { contextFor } = contextIn(restricted(), { policyOf: () => Promise.resolve({}) });
      const { render: withoutPolicy } = await contextFor(appService, []);
      expect(() => withoutPolicy(appService, routed)).toThrow('spec.route: is used, and the policy');
      expect(withoutPolicy(appService, cr)).toHaveLength(1);
    });

    test("or none, which forbids nothing, where it can't be seen, or there is no operator", async () => {
      for (const cluster of [restricted(), new MemoryCluster()]) {
        const { contextFor } = contextIn(cluster);
        const { render: unrestricted } = await contextFor(appService, []);
        expect(unrestricted(appService, routed)).toHaveLength(3);
      }
    });
  });
});
