import { CliError } from './exit.js';

/** Of kinds that the cluster doesn't serve: what installs them. With exit code 3. */
export function notInstalled(names: readonly string[]): CliError {
  const isOne = names.length === 1;
  return new CliError(
    `${names.join(', ')} ${isOne ? "isn't" : "aren't"} installed in the cluster; install ${isOne ? 'it' : 'them'} with ` +
      `"reconstruct install --apply" and the options in use, or apply the CRD`,
    3,
  );
}
