import { expect, it } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import { metered } from '../../src/engine/gate.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { LimitedServer } from './support/limited-server.js';
import { ScriptedTransport } from './support/scripted-transport.js';
import { VirtualClock } from './support/virtual-clock.js';

it('counts and times answers and failures, by method and host', async () => {
  const clock = new VirtualClock();
  const server = new LimitedServer(clock);
  server.latencyMilliseconds = 400;
  const metrics = new Metrics();
  const transport = metered(server, metrics, clock);
  const answers = [
    transport.request({ method: 'PATCH', path: '/a' }),
    transport.stream({ method: 'GET', path: '/w' }),
  ];
  await clock.advance(400);
  await Promise.all(answers);
  server.down = true;
  await expect(transport.request({ method: 'PATCH', path: '/a' })).rejects.toThrow('ECONNREFUSED');

  const text = await metrics.scrape();
  for (const line of [
    'rest_client_requests_total{code="200",method="PATCH",host="api.test:443"} 1',
    'rest_client_requests_total{code="200",method="GET",host="api.test:443"} 1',
    'rest_client_requests_total{code="<error>",method="PATCH",host="api.test:443"} 1',
    'rest_client_request_duration_seconds_sum{verb="PATCH",host="api.test:443"} 0.4',
    'rest_client_request_duration_seconds_count{verb="PATCH",host="api.test:443"} 2',
    'rest_client_request_duration_seconds_sum{verb="GET",host="api.test:443"} 0.4',
  ])
    expect(text).toContain(line);
});

it('does not count what was held back before it was sent', async () => {
  const scripted = new ScriptedTransport();
  scripted.answers.push(new OperatorError({ reason: 'Unreachable', message: 'held back' }));
  const metrics = new Metrics();
  await expect(metered(scripted, metrics).request({ method: 'PATCH', path: '/a' })).rejects.toThrow('held');
  expect((await metrics.requests.get()).values).toEqual([]);
});
