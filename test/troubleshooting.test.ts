import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { repoFolder } from '../sandbox/paths.js';
import { alertGroups } from '../src/install/chart.js';
import { reasonsGiven } from './support/reasons.js';

const textOf = (path: string): string => readFileSync(join(repoFolder(), path), 'utf8');
const page = textOf('docs/troubleshooting.md');

/** What the tables of a page have in their column `reason`. */
function reasonsIn(path: string): string[] {
  const tables = textOf(path).match(/(?:^\|.*\n)+/gm) ?? [];
  return tables.flatMap((table) => {
    const rows = table.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
    const column = rows[0]!.indexOf('reason');
    if (column < 0) return [];
    return rows
      .slice(2)
      .flatMap((row) => [...(row[column] ?? '').matchAll(/`(\w+)`/g)].map(([, reason]) => reason!));
  });
}

/** Reasons that no custom resource gets. */
const UNWRITTEN = new Set([
  // Of commands, and of starts that fail.
  ...['DryRunUnsupported', 'InvalidDefinition', 'InvalidInput', 'NoCluster', 'Timeout', 'WouldDelete'],
  // Of a process that may no longer write.
  ...['Interrupted', 'NotLeading'],
  // Of dependencies: the custom resource has `WaitingForDependency`.
  ...['NotApplied', 'NotComplete', 'NotObserved', 'Pending'],
  // Read, of a Deployment.
  'MinimumReplicasUnavailable',
]);

/** What a page says of events. */
function eventsIn(path: string): string[] {
  const [paragraph = ''] = /^(?:Events: |Recorded for )(?:.+\n)+/m.exec(textOf(path)) ?? [];
  return [...paragraph.matchAll(/`(\w+)`/g)].map(([, event]) => event!);
}

it.each([
  ['cli', ['contract', 'client', 'author', 'render', 'validate', 'engine', 'cli/synth', 'cli/tree']],
  ['appservice', ['kinds/app-service']],
  ['streamingress', ['kinds/stream-ingress']],
  ['jobwatcher', ['kinds/job-watcher']],
])('the reference of %s has every reason that is written', (name, folders) => {
  const pages = ['cli', name].map((page) => `docs/reference/${page}.md`);
  const known = new Set([...pages.flatMap(reasonsIn), ...pages.flatMap(eventsIn), ...UNWRITTEN]);
  const given = reasonsGiven(folders);
  expect(given.size).toBeGreaterThan(15);
  expect([...given].filter(([reason]) => !known.has(reason))).toEqual([]);
});

it.each([
  ['cli', 25],
  ['appservice', 20],
  ['streamingress', 20],
  ['jobwatcher', 25],
])('has every reason that the reference of %s has', (name, atLeast) => {
  const reasons = reasonsIn(`docs/reference/${name}.md`);
  expect(reasons.length).toBeGreaterThanOrEqual(atLeast);
  expect(reasons.filter((reason) => !page.includes(`\`${reason}\``))).toEqual([]);
});

it('leads to every runbook', () => {
  const names = alertGroups('ops').flatMap(({ rules }) => rules.map(({ alert }) => alert));
  expect(names.filter((name) => !page.includes(`(runbooks/${name}.md)`))).toEqual([]);
});
