import { writeFolder } from './synth/folder.js';
import { readReferences } from '../render/references.js';
import { synth } from './synth/synth.js';
import { kindFlagValues } from './options.js';
import type { SharedOptions } from './options.js';
import { loadKinds } from './config.js';
import { print, printError, printWritten, warn } from './output.js';
import { adminFiles } from './admin-file.js';

interface SynthOptions extends SharedOptions {
  readonly output?: string;
  readonly stdout?: boolean;
  readonly references?: readonly string[];
}

/** `reconstruct synth`: renders custom resources to manifests, without asking any cluster. */
export async function runSynth(sources: readonly string[], options: SynthOptions): Promise<void> {
  const { namespace, recursive = false } = options;
  const kinds = await loadKinds(options);
  const files = await adminFiles(options);
  const references = options.references && (await readReferences(options.references, recursive));
  const manifests = await synth({
    ...{ kinds, sources, recursive, files, flags: kindFlagValues(options), warn, note: printError },
    ...(namespace !== undefined && { namespace }),
    ...(references && { references }),
  });
  // `cdk8s synth` reads what its app wrote from the folder that it names in the environment.
  const folder = options.stdout ? undefined : (options.output ?? (process.env.CDK8S_OUTDIR || undefined));
  if (folder === undefined) {
    await print(manifests.map(({ text }) => text).join(''));
    return;
  }
  const changes = writeFolder(folder, manifests);
  if (options.output !== undefined) printWritten(folder, changes);
}
