import { isDeepStrictEqual } from 'node:util';
import { Command, CommanderError } from 'commander';
import { OperatorError } from '../contract/error.js';
import type { Kind, Policy, FlagValues, KindFlag } from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { suggest } from '../contract/suggest.js';
import { builtInFlags } from '../kinds/flags.js';
import { showValue } from '../synth/problem.js';
import type { ResourceList } from '../synth/resource-list.js';
import { CliError } from './exit.js';
import { addKindFlags, kindFlagValues, sharedOptions } from './options.js';
import { kindsOnRequest } from './config.js';
import { policyOf } from './policy-file.js';
import { print } from './output.js';

interface FnFlags {
  readonly namespace?: string;
  readonly config?: string;
  readonly kinds?: readonly string[];
  readonly policy?: string;
}

/** `reconstruct fn`: renders the custom resources of a ResourceList, for kustomize, kpt and others. */
export function fnCommand(kindFlags = builtInFlags): Command {
  return withOptions(new Command('fn'), kindFlags)
    .summary('render the custom resources of a ResourceList, for kustomize and kpt')
    .description(
      'A KRM function: reads a ResourceList from standard input, renders the custom resources in it, and writes the list ' +
        'to standard output. The functionConfig is one of them, or a ConfigMap whose keys are options, without dashes.',
    )
    .action((flags: FnFlags) => run(flags, kindFlags));
}

function withOptions(command: Command, kindFlags: readonly KindFlag[]): Command {
  command
    .option('-n, --namespace <name>', 'the namespace of custom resources that name none')
    .addOption(sharedOptions.config())
    .addOption(sharedOptions.kinds())
    .addOption(sharedOptions.policy());
  return addKindFlags(command, kindFlags);
}

async function run(flags: FnFlags, kindFlags: readonly KindFlag[]): Promise<void> {
  // Loaded here, so that `--help` needs neither cdk8s nor ajv.
  const [{ parseResourceList }, { readStdin }] = await Promise.all([
    import('../synth/resource-list.js'),
    import('../synth/document.js'),
  ]);
  const list = parseResourceList((await readStdin()).toString('utf8'));
  try {
    const { text, lines, failed } = await rendered(list, flags, kindFlags);
    await print(text);
    if (failed) throw new Told(lines, 2);
    for (const line of lines) process.stderr.write(`${line}\n`);
  } catch (error) {
    if (error instanceof Told || !(error instanceof CliError || error instanceof OperatorError)) throw error;
    const lines = error.message.split('\n');
    const items = list.items.map(({ node }) => node);
    await print(
      list.write(
        items,
        lines.map((message) => ({ message, severity: 'error' })),
      ),
    );
    throw new CliError(lines, 2);
  }
}

/** Its lines are among the results already. */
class Told extends CliError {}

interface Outcome {
  readonly text: string;
  readonly lines: readonly string[];
  readonly failed: boolean;
}

async function rendered(
  list: ResourceList,
  flags: FnFlags,
  kindFlags: readonly KindFlag[],
): Promise<Outcome> {
  const [{ builtInKinds }, { loadKinds }, { renderList }, { remarkLine }] = await Promise.all([
    import('../kinds/index.js'),
    import('./config.js'),
    import('../synth/resource-list.js'),
    import('../synth/document.js'),
  ]);
  const command = withOptions(new Command(), kindFlags);
  const { given, policy: policyText } = readFunctionConfig(list.functionConfig?.object, command);
  refuseContradictions(flags, given, command);
  const all: FnFlags = { ...given, ...flags };
  const { namespace, config, kinds: names } = all;
  const kinds = await loadKinds({
    builtIn: builtInKinds,
    onRequest: kindsOnRequest,
    ...(config !== undefined && { config }),
    ...(names !== undefined && { kinds: names }),
  });
  requireKnown(list.functionConfig?.object, kinds);
  const policy = await chosenPolicy(all, policyText);
  const values: FlagValues = kindFlagValues(kindFlags, all);
  const { text, problems, notes } = await renderList(list, {
    kinds,
    flags: values,
    ...(namespace !== undefined && { namespace }),
    ...(policy && { policy }),
  });
  const failed = problems.length > 0;
  return { text, failed, lines: failed ? problems.map(remarkLine) : notes };
}

/** Who calls the function has the last word on what it may do; a list comes from anywhere. */
function refuseContradictions(flags: object, given: object, command: Command): void {
  const ofCaller = new Map(Object.entries(flags));
  for (const [name, value] of Object.entries(given)) {
    if (!ofCaller.has(name) || isDeepStrictEqual(ofCaller.get(name), value)) continue;
    const long = command.options.find((option) => option.attributeName() === name)?.long ?? name;
    const key = long.replace(/^--/, '');
    throw new CliError(`functionConfig: data.${key}: ${long} gives another one already; remove it`, 2);
  }
}

/** What isn't understood must not be passed over: it may restrict something. */
function requireKnown(config: AnyObject | undefined, kinds: readonly Kind[]): void {
  if (!config || isConfigMap(config) || kinds.some(({ type }) => groupKind(type) === groupKind(config)))
    return;
  const known = kinds.map(({ type }) => type.kind).join(', ');
  throw new CliError(
    `functionConfig: ${config.kind} of ${config.apiVersion} is nothing that is known here; give a ConfigMap with options, or one of ${known}`,
    2,
  );
}

async function chosenPolicy(flags: FnFlags, text: string | undefined): Promise<Policy | undefined> {
  const { builtInKinds } = await import('../kinds/index.js');
  if (text === undefined) return policyOf(flags, builtInKinds);
  if (flags.policy !== undefined)
    throw new CliError('functionConfig: data.policy: --policy gives one already; remove it', 2);
  const [{ parsePolicy }, { loadKinds }] = await Promise.all([import('./policy.js'), import('./config.js')]);
  const { config } = flags;
  const kinds = await loadKinds({ builtIn: builtInKinds, ...(config !== undefined && { config }) });
  return parsePolicy('functionConfig: data.policy', text, kinds);
}

/** What the functionConfig of a function may say. */
interface FunctionConfig {
  /** Options by their names, as commander has them. */
  readonly given: object;
  /** The text of a policy. @default - none is given */
  readonly policy?: string;
}

/** A list may not name code to run, and a policy is given as text. */
const NOT_HERE: readonly string[] = ['config', 'policy'];

/**
 * Reads options from a ConfigMap, whose keys are their names without dashes; `policy` holds the policy itself. Anything
 * else gives none.
 * @param command that knows the options
 * @throws CliError with exit code 2
 */
function readFunctionConfig(object: AnyObject | undefined, command: Command): FunctionConfig {
  if (!object || !isConfigMap(object)) return { given: {} };
  const data = Object.entries((object.data ?? {}) as Readonly<Record<string, unknown>>);
  const names = command.options.flatMap(({ long }) => (long ? [long.slice(2)] : []));
  const known = ['policy', ...names.filter((name) => !NOT_HERE.includes(name))];
  const args = data.flatMap(([key, value]) => {
    if (!known.includes(key)) {
      const near = suggest(key, known);
      const remedy = near ? `did you mean ${near}?` : `the keys are ${known.join(', ')}`;
      throw refusal(`data.${key}: there is no such option; ${remedy}`);
    }
    if (typeof value !== 'string')
      throw refusal(`data.${key}: ${showValue(value)} is not text; put it in quotes`);
    return key === 'policy' ? [] : [`--${key}=${value}`];
  });
  const policy = data.find(([key]) => key === 'policy')?.[1];
  return { given: parsed(command, args), ...(typeof policy === 'string' && { policy }) };
}

function isConfigMap({ apiVersion, kind }: AnyObject): boolean {
  return apiVersion === 'v1' && kind === 'ConfigMap';
}

function parsed(command: Command, args: readonly string[]): object {
  try {
    return command
      .exitOverride()
      .configureOutput({ writeErr: () => undefined })
      .parse(args, { from: 'user' })
      .opts();
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    throw refusal(error.message.replace(/^error: /, ''));
  }
}

function refusal(message: string): CliError {
  return new CliError(`functionConfig: ${message}`, 2);
}
