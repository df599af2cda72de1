import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { SandboxClient } from '../../../sandbox/client.js';
import { withFolder } from './commands.js';
import type { Intent } from './intents.js';

/**
 * What `kubectl diff --server-side` prints of these objects, applied by the field managers of the operator.
 * @throws where it fails, as with a conflict
 */
export async function kubectlDiff(sandbox: SandboxClient, intents: readonly Intent[]): Promise<string> {
  const groups = new Set(intents.map(groupOf));
  const printed: string[] = [];
  for (const group of groups)
    printed.push(
      await diffOf(
        sandbox,
        intents.filter((intent) => groupOf(intent) === group),
      ),
    );
  return printed.join('');
}

function groupOf({ manager, force }: Intent): string {
  return `${manager} ${force}`;
}

async function diffOf(sandbox: SandboxClient, intents: readonly Intent[]): Promise<string> {
  const { manager, force } = intents[0]!;
  const list = { apiVersion: 'v1', kind: 'List', items: intents.map(({ object }) => object) };
  return withFolder(async (folder) => {
    const file = join(folder, 'objects.json');
    await writeFile(file, JSON.stringify(list));
    const args = ['diff', '--server-side', `--field-manager=${manager}`, '-f', file];
    const all = [...args, ...(force ? ['--force-conflicts'] : []), '--kubeconfig', sandbox.adminKubeconfig];
    try {
      return (await promisify(execFile)(sandbox.kubectlPath, all)).stdout;
    } catch (error) {
      const { code, stdout } = error as { code?: unknown; stdout: string };
      if (code === 1 && stdout !== '') return stdout;
      throw error;
    }
  });
}
