import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

const SCRIPT = readFileSync(join(import.meta.dirname, 'open-port.sh'), 'utf8');
const RULE = 'tcp dport 9100 meta mark set meta mark or 0x10 accept comment "node exporter"';

/**
 * An nft that writes down what it is told, and knows one thing: whose chain is there. What names another chain fails as a
 * whole, as a transaction does.
 */
const NFT = `#!/bin/sh
if [ "$1" = list ]; then
  [ "$(cat "$STATE/chain" 2>/dev/null)" = "$5" ] && cat "$STATE/input"
  exit
fi
input=$(cat)
echo "$input" >>"$STATE/log"
case $input in
  flush*)
    [ "$(cat "$STATE/chain")" = "$CHAIN" ] || exit 1
    rm "$STATE/chain"
    ;;
  *) echo "$input" >"$STATE/input" && echo "$CHAIN" >"$STATE/chain" ;;
esac
`;
/** Until the test wakes it, or is over. */
const SLEEP = `#!/bin/sh
while [ -d "$STATE" ] && [ ! -e "$STATE/awake" ]; do /bin/sleep 0.01; done
`;
const VARIABLES = {
  ...{ TABLE: 'portrule_shop_http', CHAIN: 'pod-1', PROTOCOL: 'tcp', PORT: '9100', MARK: '0x10' },
  ...{ COMMENT: 'node exporter', PERMANENT: 'false' },
};

const pods = [];
let programs;
let state;

before(() => {
  programs = mkdtempSync(join(tmpdir(), 'port-rule-'));
  for (const [name, text] of [
    ['nft', NFT],
    ['sleep', SLEEP],
  ]) {
    writeFileSync(join(programs, name), text);
    chmodSync(join(programs, name), 0o755);
  }
});
after(() => {
  for (const pod of pods) pod.kill('SIGKILL');
  rmSync(programs, { recursive: true });
});
beforeEach(() => {
  state = mkdtempSync(join(programs, 'state-'));
});

function environment(changes = {}) {
  return { ...VARIABLES, ...changes, STATE: state, PATH: `${programs}:${process.env.PATH}` };
}

/** The script as a pod runs it, once it has opened its port. */
async function opened(changes = {}) {
  const env = environment(changes);
  const pod = spawn('/bin/sh', ['-c', SCRIPT], {
    env,
    stdio: 'ignore',
    timeout: 60_000,
    killSignal: 'SIGKILL',
  });
  pods.push(pod);
  await until(() => chain() === env.CHAIN);
  return async () => {
    pod.kill('SIGTERM');
    const [code] = await once(pod, 'exit');
    return code;
  };
}

/** The chain that is there; none where the table is gone. */
function chain() {
  const file = join(state, 'chain');
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
}

async function until(holds) {
  const deadline = Date.now() + 10_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`It never came to ${holds}`);
    await delay(10);
  }
}

test('a shell understands it', () => {
  const { status, stderr } = spawnSync('/bin/sh', ['-n'], {
    input: SCRIPT,
    encoding: 'utf8',
    timeout: 10_000,
  });

  assert.equal(status, 0, stderr);
});

test('it touches its own table, all at once', async () => {
  const stop = await opened();
  await stop();

  const [opening, closing] = readFileSync(join(state, 'log'), 'utf8').split(/^(?=flush)/m);
  assert.match(opening, /^add table inet portrule_shop_http\ndelete table inet portrule_shop_http\n/);
  assert.ok(opening.includes(RULE), opening);
  assert.match(closing, /^flush chain inet portrule_shop_http pod-1\n/);
  assert.doesNotMatch(opening + closing, /ruleset/);
});

test('a rule goes with its pod', async () => {
  const stop = await opened();

  assert.equal(await stop(), 0);
  assert.equal(chain(), undefined);
});

test('a permanent rule stays', async () => {
  const stop = await opened({ PERMANENT: 'true' });

  assert.equal(await stop(), 0);
  assert.equal(chain(), 'pod-1');
});

test('a rule that is taken away comes back', async () => {
  const stop = await opened();
  rmSync(join(state, 'chain'));
  writeFileSync(join(state, 'awake'), '');

  await until(() => chain() === 'pod-1');
  await stop();
});

test('what the next pod has opened, the one before leaves open', async () => {
  const stopFirst = await opened();
  const stopSecond = await opened({ CHAIN: 'pod-2' });

  await stopFirst();
  assert.equal(chain(), 'pod-2');
  await stopSecond();
  assert.equal(chain(), undefined);
});

for (const [what, changes] of [
  ['a name', { COMMENT: 'x" accept; flush ruleset; #' }],
  ['a line', { COMMENT: 'x\nflush ruleset' }],
  ['a table', { TABLE: 'x; flush ruleset' }],
  ['nothing', { PORT: '' }],
])
  test(`${what} that is no word reaches no nft`, () => {
    const { status, stderr } = spawnSync('/bin/sh', ['-c', SCRIPT], {
      env: environment(changes),
      ...{ encoding: 'utf8', timeout: 10_000 },
    });

    assert.equal(status, 2);
    assert.match(stderr, /^not a name/);
    assert.equal(existsSync(join(state, 'log')), false);
  });
