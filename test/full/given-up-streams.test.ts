import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { accessTo, H2Server } from '../engine/support/h2-server.js';

const lib = pathToFileURL(join(repoFolder(), 'lib')).href;

/**
 * So many times, a transport with watches and writes in every state: waiting for an answer, reading one, finished. They
 * are given up at a random moment, and a little later their connections end.
 */
const client = (port: number, end: string): string => `
  import { UndiciTransport } from '${lib}/client/transport.js';
  const access = ${JSON.stringify(accessTo(`https://127.0.0.1:${port}`))};
  const ignored = () => undefined;
  const some = (milliseconds) => new Promise((resolve) => setTimeout(resolve, Math.random() * milliseconds));
  for (let round = 0; round < 60; round++) {
    const transport = new UndiciTransport(access, 'test');
    await transport.request({ method: 'GET', path: '/warm' });
    const abort = new AbortController();
    const watch = async (n) => {
      const { chunks } = await transport.stream({ method: 'GET', path: '/watch/' + n, signal: abort.signal });
      for await (const _ of chunks);
    };
    const write = (n) => transport.request({ method: 'PATCH', path: '/write/' + n, body: { n }, signal: abort.signal });
    const all = Array.from({ length: 40 }, (_, n) => (n % 2 ? watch(n) : write(n)).catch(ignored));
    await some(8);
    abort.abort();
    await some(4);
    ${end}
    await transport.close();
    await Promise.all(all);
  }
  console.log('done');
  process.exit();`;

test.for([
  ['its transport is closed', ''],
  ['its connection is taken back', 'transport.withdraw(); await some(4);'],
  ['its connection breaks', "await transport.request({ method: 'GET', path: '/break' }).catch(ignored);"],
])('a process outlives requests that it has given up when %s', async ([, end]) => {
  const server = await H2Server.start();
  server.respond = (path, stream) => {
    if (path === '/break') stream.session?.socket.destroy();
    const respond = (): void => {
      if (stream.destroyed || stream.session?.destroyed !== false) return;
      stream.respond({ ':status': 200, 'content-type': 'application/json' });
      if (path.startsWith('/watch')) stream.write('{}\n');
      else stream.end('{}');
    };
    if (path === '/warm') respond();
    else setTimeout(respond, Math.random() * 8);
  };

  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--no-warnings', '--input-type=module', '--eval', client(server.port, end ?? '')],
    // It is killed then, and the promise is rejected.
    { timeout: 100_000 },
  );

  expect(stdout).toBe('done\n');
});
