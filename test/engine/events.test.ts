import { describe, expect, it } from 'vitest';
import type { EventProps } from '../../src/contract/controller.js';
import { microTime } from '../../src/engine/events.js';
import { newBench } from './support/bench.js';
import { failure } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';

const REGARDING = {
  apiVersion: 'demo.example.com/v1',
  kind: 'Widget',
  namespace: 'shop',
  name: 'web',
  uid: 'u',
};
const EVENT: EventProps = { type: 'Warning', reason: 'Invalid', action: 'Reconcile', note: 'it cannot be' };

async function sent(regarding: typeof REGARDING | Omit<typeof REGARDING, 'namespace'>, event = EVENT) {
  const { server, tools } = newBench(new FakeApiServer());
  await tools.recorder.send(regarding, event);
  return {
    path: server.requests[0]?.path,
    body: server.requests[0]?.body as { note: string; metadata: { name: string } },
  };
}

describe('EventRecorder', () => {
  it('sends an event of events.k8s.io/v1 beside the object that it regards', async () => {
    const { path, body } = await sent(REGARDING);
    expect(path).toBe('/apis/events.k8s.io/v1/namespaces/shop/events');
    expect(body).toEqual({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: expect.stringMatching(/^web\.[0-9a-f]{12}$/) as unknown, namespace: 'shop' },
      eventTime: '2026-01-01T00:00:00.000000Z',
      reportingController: 'kosmos.io/reconstruct',
      reportingInstance: 'pod-1',
      regarding: REGARDING,
      ...EVENT,
    });
  });

  it('puts events of what has no namespace into the default one', async () => {
    const { namespace, ...regarding } = REGARDING;
    expect((await sent(regarding)).path).toBe('/apis/events.k8s.io/v1/namespaces/default/events');
  });

  it('cuts a note that is too long', async () => {
    expect((await sent(REGARDING, { ...EVENT, note: 'x'.repeat(3000) })).body.note).toHaveLength(1024);
  });

  // The server counts bytes: `len(event.Message) > NoteLengthLimit` in pkg/apis/core/validation/events.go.
  it('cuts a note so that the server takes it, whatever its script', async () => {
    const { body } = await sent(REGARDING, { ...EVENT, note: '端口已被占用'.repeat(200) });
    expect(Buffer.byteLength(body.note)).toBeLessThanOrEqual(1024);
  });

  it('drops what cannot be sent, with a line in the log', async () => {
    const { server, tools, lines } = newBench(new FakeApiServer());
    server.intercept = () => failure(403, 'Forbidden', 'no');
    await expect(tools.recorder.send(REGARDING, EVENT)).resolves.toBeUndefined();
    expect(lines).toMatchObject([{ level: 'warn', message: 'Event for Widget shop/web not sent' }]);
  });
});

it('writes times with exactly six digits after the point', () => {
  expect(microTime(Date.UTC(2026, 0, 1, 2, 3, 4, 5))).toBe('2026-01-01T02:03:04.005000Z');
  expect(microTime(Date.UTC(2026, 0, 1))).toBe('2026-01-01T00:00:00.000000Z');
});
