import { afterEach, beforeEach, expect, test } from 'vitest';
import { Agent, request } from 'undici';
import type { Dispatcher } from 'undici';
import { eventually } from '../../full/support/eventually.js';
import { loopbackCertificate } from './certificate.js';
import { behind, drop, Gate, late, loseAnswer, losing, oneIn, recorded, reset, respond } from './faults.js';
import { FaultProxy } from './fault-proxy.js';
import { proxiedRequest, watches, writesTo } from './proxied-request.js';
import { TestServer } from './test-server.js';
import { WatchLine } from '../../../src/testing/watch-line.js';

const certificate = loopbackCertificate();
let server: TestServer;
let proxy: FaultProxy;
let agent: Agent;

beforeEach(async () => {
  server = await TestServer.start(certificate);
  proxy = await FaultProxy.start({ url: server.url, ca: server.ca }, certificate);
  agent = agentFor(true);
});
afterEach(async () => {
  await agent.destroy();
  await proxy[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

function agentFor(allowH2: boolean): Agent {
  return new Agent({ allowH2, connect: { ca: certificate.certificate } });
}

const path = '/api/v1/namespaces/shop/services';

async function send(
  where: string,
  options: Partial<Dispatcher.RequestOptions> & { dispatcher?: Agent } = {},
): Promise<{ status: number; headers: Dispatcher.ResponseData['headers']; body: string }> {
  const method = options.method ?? 'GET';
  const answer = await request(proxy.url + where, { dispatcher: agent, ...options, method });
  return { status: answer.statusCode, headers: answer.headers, body: await answer.body.text() };
}

/** An open watch, and what it has delivered. */
async function watch(where = path, dispatcher = agent): Promise<{ text: string; ended?: string }> {
  const state: { text: string; ended?: string } = { text: '' };
  const answer = await request(`${proxy.url}${where}?watch=true`, { dispatcher });
  answer.body.on('data', (chunk: Buffer) => (state.text += chunk.toString()));
  answer.body.on('end', () => (state.ended = 'well'));
  answer.body.on('error', () => (state.ended = 'broken'));
  return state;
}

const event = (name: string): string =>
  `${JSON.stringify({ type: 'MODIFIED', object: { kind: 'Service', metadata: { name } } })}\n`;

const variants = (['PATCH', 'POST', 'PUT', 'DELETE'] as const).flatMap((method) => [
  { method, allowH2: true },
  { method, allowH2: false },
]);

test.for(variants)('it passes a $method on as it is (HTTP/2: $allowH2)', async ({ method, allowH2 }) => {
  const dispatcher = agentFor(allowH2);
  const { status, headers, body } = await send(`${path}/web?fieldManager=me`, {
    ...{ dispatcher, method, body: '{"a":1}' },
    headers: { 'x-answer-status': '418', 'content-type': 'application/apply-patch+yaml', 'user-agent': 'me' },
  });

  expect(status).toBe(418);
  expect(headers).toMatchObject({ 'x-header': 'kept', 'content-type': 'application/json' });
  expect(JSON.parse(body)).toMatchObject({
    ':method': method,
    ':path': `${path}/web?fieldManager=me`,
    'content-type': 'application/apply-patch+yaml',
    'user-agent': 'me',
    body: '{"a":1}',
  });
  expect(proxy.requests).toMatchObject([
    { method, resource: 'services', namespace: 'shop', name: 'web', userAgent: 'me', status: 418 },
  ]);
  await eventually(() => {
    expect(proxy.requests[0]!.endedAt).toBeGreaterThanOrEqual(proxy.requests[0]!.startedAt);
  });
  await dispatcher.destroy();
});

test('it passes on bodies of any size whole, at the pace of the reader', async () => {
  const body = Buffer.alloc(24 * 2 ** 20, 'abcdefghij');
  const answer = await request(proxy.url + path, { dispatcher: agent, method: 'POST', body });
  const chunks: Buffer[] = [];
  for await (const chunk of answer.body) {
    chunks.push(chunk as Buffer);
    await new Promise(setImmediate);
  }
  expect(Buffer.concat(chunks).equals(body)).toBe(true);
});

test('it streams watches: each event as it comes, and the end', async () => {
  const state = await watch();
  await eventually(() => {
    expect(server.watches).toHaveLength(1);
  });
  server.watches[0]!.send(event('web').slice(0, 10));
  server.watches[0]!.send(event('web').slice(10) + event('worker'));
  await eventually(() => {
    expect(state.text).toBe(event('web') + event('worker'));
  });
  expect(state.ended).toBeUndefined();

  server.watches[0]!.end();
  await eventually(() => {
    expect(state.ended).toBe('well');
  });
});

test('the answer to a watch that is refused is passed on, and not taken for an event', async () => {
  const heard: WatchLine[] = [];
  proxy.listen(watches(), (line) => heard.push(line));

  const { status, body } = await send(`${path}?watch=true`, { headers: { 'x-answer-status': '503' } });

  expect([status, JSON.parse(body)]).toEqual([503, { kind: 'Status', code: 503 }]);
  expect(heard).toEqual([]);
});

test('a client that leaves is seen to leave by the server', async () => {
  const controller = new AbortController();
  const { body } = await request(`${proxy.url}${path}?watch=true`, {
    ...{ dispatcher: agent, signal: controller.signal },
  });
  body.on('error', () => undefined);
  const other = await watch('/api/v1/pods');
  expect(server.watches[0]!.isOpen).toBe(true);
  controller.abort();
  await eventually(() => {
    expect(server.watches[0]!.isOpen).toBe(false);
  });
  expect(server.watches[1]!.isOpen).toBe(true);
  expect(other.ended).toBeUndefined();
});

test('a server that asks to go elsewhere finishes what is under way, and the next connection works', async () => {
  const state = await watch();
  server.goaway();
  server.watches[0]!.send(event('last'));
  server.watches[0]!.end();
  await eventually(() => {
    expect(state).toEqual({ text: event('last'), ended: 'well' });
  });
  await eventually(async () => {
    expect((await send(path)).status).toBe(200);
  });
  expect(proxy.connectionAttempts).toBe(2);
});

test('a server that crashes breaks the connection of the client too', async () => {
  const state = await watch();
  server.crash();
  await eventually(() => {
    expect(state.ended).toBe('broken');
  });
});

test('a delay, a refusal and a reset meet what they are meant for, as long as they are there', async () => {
  const slow = proxy.on(writesTo('services', 'slow'), late(30));
  proxy.on(writesTo('services', 'refused'), respond({ status: 429, headers: { 'retry-after': '7' } }));
  proxy.on(writesTo('services', 'reset'), reset);
  proxy.on((req) => req.userAgent === 'curl', respond({ status: 403 }));
  const options = { method: 'DELETE' } as const;

  const startedAt = performance.now();
  expect((await send(`${path}/slow`, options)).status).toBe(200);
  expect(performance.now() - startedAt).toBeGreaterThan(28);
  const refused = await send(`${path}/refused`, options);
  expect(refused.status).toBe(429);
  expect(refused.headers['retry-after']).toBe('7');
  expect(JSON.parse(refused.body)).toMatchObject({ kind: 'Status', code: 429, reason: 'TooManyRequests' });
  await expect(send(`${path}/reset`, options)).rejects.toThrow();
  expect((await send(path, { headers: { 'user-agent': 'curl' } })).status).toBe(403);
  expect((await send(`${path}/other`, options)).status).toBe(200);
  expect(server.arrived).toEqual([`DELETE ${path}/slow`, `DELETE ${path}/other`]);

  slow.remove();
  expect(slow.hits).toBe(1);
  await send(`${path}/slow`, options);
  expect(slow.hits).toBe(1);
});

test('of an answer that is lost nothing arrives, and the server has done what was asked', async () => {
  const rule = proxy.on(writesTo(), loseAnswer);
  await expect(send(path, { method: 'POST' })).rejects.toThrow();
  expect(server.arrived).toEqual([`POST ${path}`]);
  rule.remove();
  expect((await send(path, { method: 'POST' })).status).toBe(200);
});

test('what is dropped is never answered, and the server hears nothing of it', async () => {
  proxy.on(writesTo(), drop);
  const end = new AbortController();
  const refused = expect(send(path, { method: 'POST', signal: end.signal })).rejects.toThrow(/abort/);
  await eventually(() => {
    expect(proxy.requests).toMatchObject([{ method: 'POST' }]);
  });
  // What came later has its answer.
  expect((await send(path)).status).toBe(200);
  end.abort();
  await refused;
  expect(server.arrived).toEqual([`GET ${path}`]);
});

test('a gate holds requests back until it opens', async () => {
  const gate = new Gate();
  proxy.on(writesTo(), gate.fault);
  const answer = send(path, { method: 'POST' });
  await eventually(() => {
    expect(gate.held).toBe(1);
  });
  expect(server.arrived).toEqual([]);
  gate.open();
  expect((await answer).status).toBe(200);
  expect((await send(path, { method: 'POST' })).status).toBe(200);
});

test('a fault for one in two meets the first, the third and so on', async () => {
  proxy.on(writesTo(), oneIn(2, respond({ status: 429 })));
  const statuses: number[] = [];
  for (let index = 0; index < 4; index++) statuses.push((await send(path, { method: 'POST' })).status);
  expect(statuses).toEqual([429, 200, 429, 200]);
});

test('events of one object are lost on a watch that is open already, and come again when the fault is gone', async () => {
  const state = await watch();
  const rule = proxy.onEvents(watches('services'), losing('web'));
  server.watches[0]!.send(event('web') + event('worker'));
  await eventually(() => {
    expect(state.text).toBe(event('worker'));
  });
  rule.remove();
  server.watches[0]!.send(event('web'));
  await eventually(() => {
    expect(state.text).toBe(event('worker') + event('web'));
  });
});

test('a watch that is behind delivers everything late and in order', async () => {
  const state = await watch();
  const rule = proxy.onEvents(watches(), behind(400));
  const startedAt = performance.now();
  server.watches[0]!.send(event('first'));
  await eventually(() => {
    expect(rule.hits).toBe(1);
  });
  rule.remove();
  server.watches[0]!.send(event('second'));
  server.watches[0]!.end();
  await eventually(() => {
    expect(state).toEqual({ text: event('first') + event('second'), ended: 'well' });
  });
  expect(performance.now() - startedAt).toBeGreaterThan(390);
});

test('an event of its own comes between those of the server', async () => {
  const state = await watch();
  expect(proxy.inject(watches('deployments'), WatchLine.error(410, 'Expired'))).toBe(0);
  expect(proxy.inject(watches('services'), WatchLine.error(410, 'Expired'))).toBe(1);
  await eventually(() => {
    expect(JSON.parse(state.text)).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } });
  });
});

test('a recorded list is served again', async () => {
  const lines: WatchLine[] = [];
  const stop = proxy.listen(watches(), (line) => lines.push(line));
  await watch();
  server.watches[0]!.send(event('old'));
  await eventually(() => {
    expect(lines).toHaveLength(1);
  });
  stop();

  proxy.on(watches(), recorded(lines));
  const state = await watch();
  await eventually(() => {
    expect(state).toEqual({ text: event('old'), ended: 'well' });
  });
  expect(server.watches).toHaveLength(1);
});

test('a cut ends streams, or the connections that they are on', async () => {
  const [first, second] = [await watch(), await watch('/api/v1/pods')];
  expect(proxy.cut(watches('services'))).toBe(1);
  await eventually(() => {
    expect(first.ended).toBe('broken');
  });
  expect(second.ended).toBeUndefined();
  expect(proxy.cutConnections(watches('pods'))).toBe(1);
  await eventually(() => {
    expect(second.ended).toBe('broken');
  });
  expect((await send(path)).status).toBe(200);
});

test('a stream that went silent delivers nothing, not even its end, while its connection goes on', async () => {
  const state = await watch();
  expect(proxy.silence(watches())).toBe(1);
  server.watches[0]!.send(event('web'));
  server.watches[0]!.end();
  expect((await send(path)).status).toBe(200);
  expect(state).toEqual({ text: '' });
});

test('a frozen connection answers nothing, a ping neither, and others work', async () => {
  const frozen = agentFor(true);
  const state = await watch(path, frozen);
  expect(proxy.freezeConnections(watches())).toBe(1);
  server.watches[0]!.send(event('web'));
  const answer = send(path, { dispatcher: frozen, signal: AbortSignal.timeout(50) });
  await expect(answer).rejects.toThrow();
  expect((await send(path)).status).toBe(200);
  expect(state).toEqual({ text: '' });
  expect(server.arrived).toEqual([`GET ${path}?watch=true`, `GET ${path}`]);
  await frozen.destroy();
});

test('connections are refused, turned away and counted, or taken again on the same port', async () => {
  const { url } = proxy;
  const state = await watch();
  await proxy.refuse();
  await eventually(() => {
    expect(state.ended).toBe('broken');
  });
  await expect(send(path)).rejects.toThrow(/ECONNREFUSED/);

  await proxy.accept();
  expect(proxy.url).toBe(url);
  expect((await send(path)).status).toBe(200);

  proxy.turnAway();
  const before = proxy.connectionAttempts;
  await eventually(async () => {
    await expect(send(path)).rejects.toThrow();
    expect(proxy.connectionAttempts).toBeGreaterThan(before);
  });
  await proxy.accept();
  expect((await send(path)).status).toBe(200);
});

test.for([
  ['/api/v1/namespaces/shop/services/web/status', 'services', 'shop', 'web', 'status'],
  ['/apis/apps/v1/deployments?watch=true', 'deployments', undefined, undefined, undefined],
  ['/apis/kosmos.io/v1/namespaces/shop/appservices', 'appservices', 'shop', undefined, undefined],
  ['/api/v1/namespaces/shop', 'namespaces', undefined, 'shop', undefined],
  ['/version', '', undefined, undefined, undefined],
] as const)('%s is read right', ([url, resource, namespace, name, subresource]) => {
  const read = proxiedRequest('GET', url);
  expect([read.resource, read.namespace, read.name, read.subresource]).toEqual([
    ...[resource, namespace, name, subresource],
  ]);
});
