import { expect, test, vi } from 'vitest';
import { answering } from '../../../src/cli/diff/answering.js';
import { CliError } from '../../../src/cli/exit.js';
import { asCliError } from '../../../src/cli/with-cluster.js';
import { resourceType } from '../../../src/contract/resource.js';
import { Api } from '../../../src/engine/api.js';
import type { ApiResponse, Transport } from '../../../src/engine/transport.js';

function serverOf(...answers: (ApiResponse | Error)[]): Transport & { asked: number } {
  const server = {
    ...{ host: 'api.test', asked: 0 },
    request: () => {
      const answer = answers[Math.min(server.asked++, answers.length - 1)]!;
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
    stream: () => Promise.reject(new Error('no streams')),
    close: () => Promise.resolve(),
  };
  return server;
}

const busy = { status: 429, body: '', retryAfterSeconds: 0 };
const get = { method: 'GET', path: '/api/v1/pods' } as const;

test('a server that asks to come again later is asked again, and not for ever', async () => {
  const once = serverOf(busy, { status: 200, body: 'ok' });
  expect(await answering(once).request(get)).toMatchObject({ status: 200 });
  const always = serverOf(busy);
  expect(await answering(always).request(get)).toEqual(busy);
  expect(always.asked).toBe(5);
});

test("one that doesn't answer is an error of the cluster", async () => {
  const api = new Api(answering(serverOf(new Error('connect ECONNREFUSED'))));
  const error = await api
    .get(resourceType({ apiVersion: 'v1', kind: 'Pod' }), 'shop/web')
    .catch((thrown: unknown) => asCliError(thrown));
  expect(error).toBeInstanceOf(CliError);
  expect(error).toMatchObject({
    exitCode: 3,
    message:
      'Get Pod shop/web: the API server gave no answer (connect ECONNREFUSED); check --kubeconfig and --context, and that the cluster is up',
  });
});

test('closing closes the way that it goes', async () => {
  const server = serverOf(busy);
  const close = vi.spyOn(server, 'close');
  await answering(server).close();
  expect(close).toHaveBeenCalledOnce();
});
