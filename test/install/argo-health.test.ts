import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { writeYaml } from '../../src/values/yaml.js';
import { argoHealthPatch } from '../../src/install/argo-health.js';
import { loadBundle } from '../support/bundle.js';

test('the page of the tools shows the health check of a kind as it is printed', async () => {
  const page = readFileSync(join(repoFolder(), 'docs/ui.md'), 'utf8');
  const [, shown] = /^```yaml\n([^]*?)^```$/m.exec(page)!;
  const { kind } = await loadBundle();

  expect(shown).toBe(
    writeYaml(argoHealthPatch([kind])).replace('test.example.com_Bundle', 'web.example.com_Guestbook'),
  );
});
