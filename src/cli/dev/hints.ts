import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Sample } from './project.js';
import type { Stand } from './stand.js';
import type { Hints } from './view.js';

/** Where no custom resource is in `default`, `kubectl` has to be told where it is. */
const USUAL_NAMESPACE = 'default';

export function hintsFor(
  { adminKubeconfig, kubectlPath }: Pick<Stand, 'adminKubeconfig' | 'kubectlPath'>,
  [first]: readonly Sample[],
  path = process.env.PATH ?? '',
): Hints {
  const kubectl = isThere(path) ? 'kubectl' : kubectlPath;
  return { kubeconfig: adminKubeconfig, kubectl, ...(first && { example: exampleOf(first) }) };
}

function isThere(path: string): boolean {
  return path.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, 'kubectl'), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function exampleOf({ type, object: { metadata } }: Sample): string {
  const { namespace = USUAL_NAMESPACE, name } = metadata;
  const where = namespace === USUAL_NAMESPACE ? '' : ` -n ${namespace}`;
  return `${type.kind.toLowerCase()}/${name}${where}`;
}
