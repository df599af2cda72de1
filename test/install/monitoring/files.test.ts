import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { repoFolder } from '../../../sandbox/paths.js';
import { alertGroups } from '../../../src/install/monitoring/alerts.js';
import { dashboardText } from '../../../src/install/monitoring/dashboard.js';
import { ruleGroups } from '../../../src/install/monitoring/monitoring.js';
import { RUNBOOKS } from '../../../src/install/props.js';
import { DEFAULT_NAMESPACE } from '../../../src/install/names.js';
import { asMarkdown } from '../../telemetry/markdown.js';

const at = (path: string): string => join(repoFolder(), path);
const alerts = Object.values(alertGroups).flat();

/** `-u` behind the name of this file brings them up to date. */
describe('docs/monitoring', () => {
  it('has the dashboard as it is installed', async () => {
    await expect(dashboardText()).toMatchFileSnapshot(at('docs/monitoring/dashboard.json'));
  });

  it('has the rules of an installation with the default namespace', async () => {
    const groups = ruleGroups({ namespace: DEFAULT_NAMESPACE });
    await expect(stringify({ groups }, { lineWidth: 0 })).toMatchFileSnapshot(
      at('docs/monitoring/rules.yaml'),
    );
  });

  it('lists the alerts', async () => {
    const page = at('docs/monitoring/README.md');
    const rows = alerts.map(({ name, severity, for: time = '', summary }) => [
      ...[`[${name}](../runbooks/${name}.md)`, severity, time, summary],
    ]);
    const table = asMarkdown([['alert', 'severity', 'for', 'what'], ...rows]);
    const text = readFileSync(page, 'utf8');
    await expect(text.replace(/^\| alert [^]*?\n\n/m, () => `${table}\n`)).toMatchFileSnapshot(page);
  });
});

describe('docs/runbooks', () => {
  const pages = readdirSync(at(RUNBOOKS)).filter((name) => name !== 'README.md');

  it('has a page for each alert, and an alert for each page', () => {
    expect(pages.sort()).toEqual(alerts.map(({ name }) => `${name}.md`).sort());
  });

  it.each(pages)('%s says the same things in the same order', (page) => {
    const text = readFileSync(at(`${RUNBOOKS}/${page}`), 'utf8');
    expect([...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading)).toEqual([
      ...[page.replace('.md', ''), 'What it means', 'What users notice'],
      ...['Find the cause', 'Mend', 'When to ignore'],
    ]);
    expect(text).toContain('**Threshold.** ');
  });

  it('is where the alerts lead', () => {
    const urls = (runbooks?: string): (string | undefined)[] =>
      ruleGroups({ namespace: 'ops', ...(runbooks !== undefined && { runbooks }) }).flatMap(({ rules }) =>
        rules.map(({ annotations }) => annotations.runbook_url),
      );
    expect(urls().filter((url) => !existsSync(at(url!)))).toEqual([]);
    expect(urls('https://example.com/runbooks')).toContain('https://example.com/runbooks/ReconstructDown.md');
  });
});
