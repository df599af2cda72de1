import { describe, expect, test } from 'vitest';
import { ClusterClient } from '../../src/cli/cluster-client.js';
import { asCliError, requireVersion, retryingTransport } from '../../src/cli/with-cluster.js';
import { OperatorError } from '../../src/contract/error.js';
import type { ApiResponse, Transport } from '../../src/engine/transport.js';
import { failure } from '../engine/support/builders.js';

function clusterThat(answer: ApiResponse | Error): ClusterClient {
  const transport: Transport = {
    host: 'api.test',
    request: () => (answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)),
    stream: () => Promise.reject(new Error('no streams')),
    close: () => Promise.resolve(),
  };
  return new ClusterClient(transport);
}

const versioned = (minor: string) => ({ status: 200, body: { major: '1', minor } });

describe('the version', () => {
  test.each([['34'], ['34+'], ['36-beta.1']])('1.%s will do', async (minor) => {
    await expect(requireVersion(clusterThat(versioned(minor)), 'api.test')).resolves.toBeUndefined();
  });

  test('of an older API server ends with exit code 3, and what is needed', async () => {
    await expect(requireVersion(clusterThat(versioned('33+')), 'api.test')).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(
        /^The API server at api.test is of Kubernetes 1.33; 1.34 or newer is needed: /,
      ) as string,
    });
  });

  test.each([['a page'], [{ hello: 'there' }]])(
    'that is none (%j) is told: it is no API server',
    async (body) => {
      await expect(requireVersion(clusterThat({ status: 200, body }), 'api.test')).rejects.toMatchObject({
        exitCode: 3,
        message: expect.stringMatching(
          /^What answers at api.test is no Kubernetes API server; .*--context$/,
        ) as string,
      });
    },
  );

  test.each([
    [new Error('connect ECONNREFUSED'), 'connect ECONNREFUSED'],
    [
      new AggregateError([new Error('connect ECONNREFUSED ::1:1'), new Error('b')], ''),
      'connect ECONNREFUSED ::1:1',
    ],
  ])('that is not to be had is told with the reason (%#)', async (error, why) => {
    await expect(requireVersion(clusterThat(error), 'api.test')).rejects.toMatchObject({
      exitCode: 3,
      message: `The cluster at api.test doesn't answer: ${why}; check --kubeconfig and --context, and that the cluster is up`,
    });
  });

  test('that one may not ask for is no reason to end', async () => {
    await expect(
      requireVersion(clusterThat(failure(403, 'Forbidden', 'not you')), 'api.test'),
    ).resolves.toBeUndefined();
  });

  test('that is refused for want of credentials is told with the remedy', async () => {
    const refused = requireVersion(clusterThat(failure(401, 'Unauthorized', 'Unauthorized')), 'api.test');
    const error = asCliError(await refused.catch((thrown: unknown) => thrown));
    expect(error).toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(/; log in again, or choose/) as string,
    });
  });
});

test('bad input keeps all of its lines, and a refusal has one, with its remedy', () => {
  const bad = new OperatorError({ reason: 'InvalidInput', message: 'a\nb' });
  expect(asCliError(bad)).toMatchObject({ lines: ['a', 'b'], exitCode: 2 });
  const missing = new OperatorError({ reason: 'KindNotServed', message: 'List widgets: 404 page not found' });
  expect(asCliError(missing)).toMatchObject({
    lines: [
      'List widgets: 404 page not found; install it with "reconstruct install --apply" and the options in use, or apply its CRD',
    ],
    exitCode: 3,
  });
});

test('a server that asks to come again later is asked again, five times in all', async () => {
  let asked = 0;
  const busyFor = (times: number): Transport =>
    retryingTransport({
      host: 'api.test',
      request: () =>
        Promise.resolve(
          asked++ < times ? { status: 429, body: '', retryAfterSeconds: 0 } : { status: 200, body: 'ok' },
        ),
      stream: () => Promise.reject(new Error('no streams')),
      close: () => Promise.resolve(),
    });
  const get = { method: 'GET', path: '/api/v1/pods' } as const;
  expect(await busyFor(1).request(get)).toMatchObject({ status: 200 });
  asked = 0;
  expect(await busyFor(9).request(get)).toMatchObject({ status: 429 });
  expect(asked).toBe(5);
});
