import { installCommand } from './cli/commands.js';
import { execute } from './cli/exit.js';

/**
 * An app for `cdk8s synth`, which takes what `reconstruct install` takes:
 * `cdk8s synth -a 'node lib/install.js --namespace ops' -o dist/install`.
 */
await execute(installCommand());
