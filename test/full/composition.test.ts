import { mkdtemp, rm } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { repoFolder } from '../../sandbox/paths.js';
import { eventually } from '../support/cluster.js';
import { commandPath } from '../support/commands.js';
import { local, missingLines, stepsOf, Terminal } from '../support/pages.js';
import type { Step } from '../support/pages.js';

const root = repoFolder();
const page = readFileSync(join(root, 'docs/composition.md'), 'utf8');
let home: string;
let terminal: Terminal;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'composition-'));
  const { kubectlPath } = openSandbox(inject('sandbox'));
  terminal = await Terminal.open(root, {
    ...process.env,
    ...{ KUBECACHEDIR: join(home, 'kubectl'), TMPDIR: home, COLUMNS: '80' },
    ...{ NODE_OPTIONS: '', NODE_TEST_CONTEXT: undefined },
    PATH: [commandPath(kubectlPath), process.env.PATH].join(delimiter),
  });
});
afterAll(async () => {
  await terminal[Symbol.asyncDispose]();
  await rm(home, { recursive: true });
});

async function tried(step: Step): Promise<void> {
  if (step.do === 'await') return terminal.printed(step.lines);
  if (step.do === 'compare') {
    expect(readFileSync(join(terminal.currentFolder, step.file), 'utf8')).toContain(step.text);
    return;
  }
  if (step.do !== 'command') throw new Error(`The page has a step that isn't tried: ${step.do}`);
  const command = local(step.text);
  if (command.endsWith(' dev')) {
    terminal.goOn(command);
    return;
  }
  // A CRD is known everywhere only after a while.
  await eventually(
    async () => {
      const { code, output } = await terminal.type(command);
      expect(code, output).toBe(0);
      expect(missingLines(step.shown, output), output).toEqual([]);
    },
    { deadlineMilliseconds: 60_000 },
  );
}

test('what the page does with children of other operators goes as it says', async () => {
  for (const step of stepsOf(page)) await tried(step);
  const ended = await terminal.interruptAll();
  expect(ended.map(({ end }) => end)).toEqual([0]);
});
