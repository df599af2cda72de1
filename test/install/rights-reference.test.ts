import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { leaseRules, rulesFor } from '../../src/install/rules.js';
import type { PolicyRule } from '../../src/install/rules.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';

const [, rights = ''] = readFileSync(join(repoFolder(), 'docs/reference/cli.md'), 'utf8').split(
  '### Rights\n',
);
const tables = rights
  .split('\n### ')[0]!
  .split('\n\n')
  .filter((part) => part.startsWith('| API group'));

/** The rows of a table, without markup. */
function rows(table: string): string[][] {
  const lines = table.trim().split('\n').slice(2);
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.replaceAll('`', '').trim()),
  );
}

function rowOf({ apiGroups, resources, verbs, resourceNames, namespaces }: PolicyRule): string[] {
  const named = resourceNames ? ` named ${resourceNames.join(', ')}` : '';
  const where = namespaces ? ` in ${namespaces.join(', ')}` : '';
  return [apiGroups.join(', ') || 'core', `${resources.join(', ')}${named}${where}`, verbs.join(', ')];
}

test.each(
  [appService, streamIngress, jobWatcher].map((kind, index) => [kind.type.kind, kind, index] as const),
)('the reference lists the rights that %s needs', (_, kind, index) => {
  expect(rows(tables[index]!)).toEqual(rulesFor([kind]).map(rowOf));
});

test('the reference lists the rights that leader election needs', () => {
  expect(rows(tables[3]!)).toEqual(leaseRules().map(rowOf));
});
