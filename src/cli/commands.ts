import { basename } from 'node:path';
import { Argument, Command as Commander, Option } from 'commander';
import type { ParseOptionsResult } from 'commander';
import { DRIFT_MODES } from '../contract/controller.js';
import { DEFAULT_NAMESPACE, environmentName } from '../install/names.js';
import { MONITORING_PARTS } from '../install/props.js';
import { LOG_FORMATS, LOG_LEVELS } from '../telemetry/logger.js';
import { CHILDREN, DEFAULT_CHILDREN } from './init/options.js';
import { operatorImage, packageVersion } from './package.js';
import {
  CLUSTER,
  CONFIG,
  kindOptions,
  KINDS,
  WATCH_NAMESPACE,
  policyOption,
  namespaceOption,
  operatorOption,
  withOptions,
  withFnOptions,
  several,
  boolean,
  list,
  labelSelector,
  namespace,
  secretName,
  positiveInteger,
  count,
  milliseconds,
  image,
  monitoringParts,
  labels,
  url,
} from './options.js';

/** Option that asks the API server what would be done, and writes nothing. */
class DryRunOption extends Option {
  /** @param instead what to do without the API server */
  constructor(readonly instead = '') {
    super('--dry-run', 'only print what would be done, by dry runs of the API server');
  }
}

/** Spellings of others, which mean one of ours. */
const ALIASES: Readonly<Record<string, string>> = { '--health-probe-bind-address': '--health-bind-address' };

/** Command whose switches may be written as programs in Go take them: `--wait=false`, `--dry-run=server`, `-v 6`. */
class Command extends Commander {
  override createCommand(name?: string): Command {
    return new Command(name);
  }

  override parseOptions(args: string[]): ParseOptionsResult {
    const end = args.indexOf('--');
    const known = end < 0 ? args : args.slice(0, end);
    return super.parseOptions([
      ...known.flatMap((arg, index) => this.ownSpelling(arg, known[index - 1])),
      ...args.slice(known.length),
    ]);
  }

  private ownSpelling(arg: string, before = ''): string[] {
    const has = (flag: string): boolean =>
      this.options.some(({ long, short }) => [long, short].includes(flag));
    if (/^-v=?\d+$/.test(arg) && has('-v')) return ['-v'];
    if (/^\d$/.test(arg) && before === '-v' && has('-v')) return [];
    const [, flag = arg, value] = /^(--[^=]+)=(.*)$/s.exec(arg) ?? [];
    const alias = ALIASES[flag];
    if (alias !== undefined && has(alias)) return [alias + arg.slice(flag.length)];
    const option = this.options.find(({ long }) => long === flag);
    if (value === undefined || !option?.isBoolean()) return [arg];
    const isDryRun = option instanceof DryRunOption;
    if (value === 'true' || (isDryRun && value === 'server')) return [flag];
    if (value === 'false' || (isDryRun && value === 'none')) return [];
    if (isDryRun && value === 'client')
      this.error(`error: only the API server knows what would be done: write --dry-run${option.instead}`);
    return this.error(`error: ${arg}: write ${flag}, ${flag}=true or ${flag}=false`);
  }
}

/** Names under which the package installs the command; the last makes it a plugin of kubectl. */
const NAMES: readonly string[] = ['reconstruct', 'cdk8s-reconstruct', 'kubectl-reconstruct'];

/** Returns the name by which this process was started, as a user types it. */
function programName([, script = '']: readonly string[]): string {
  const name = NAMES.find((each) => each === basename(script)) ?? 'reconstruct';
  return name.replace(/^kubectl-/, 'kubectl ');
}

/** Returns the whole command. The module of a subcommand is loaded when it runs, so that `--help` is quick. */
export function program(): Command {
  return new Command(programName(process.argv))
    .description('Write a cdk8s construct, get a Kubernetes operator')
    .version(packageVersion())
    .addCommand(initCommand())
    .addCommand(synthCommand())
    .addCommand(diffCommand())
    .addCommand(applyCommand())
    .addCommand(adoptCommand())
    .addCommand(statusCommand())
    .addCommand(fnCommand())
    .addCommand(devCommand())
    .addCommand(devLoadCommand(), { hidden: true })
    .addCommand(runCommand())
    .addCommand(installCommand())
    .addCommand(uninstallCommand())
    .addCommand(versionCommand())
    .addCommand(completionCommand())
    .addCommand(completeCommand(), { hidden: true })
    .configureHelp({ showGlobalOptions: true });
}

/** Lets a command name custom resources, by arguments or as for kubectl. @param others what an argument may name, too */
function withSources(command: Command, others = ''): Command {
  return command
    .argument(
      '[source...]',
      `files, folders with .yaml, .yml and .json files, or - for standard input${others}`,
    )
    .option('-f, --filename <file>', 'the same as an argument; may be given several times', several)
    .option('-R, --recursive', 'look into subfolders too');
}

type SourcesAction<O> = (sources: readonly string[], options: O) => Promise<void>;

/** Runs an action on all sources that are given. */
function onSources<O extends object>(load: () => Promise<SourcesAction<O>>) {
  return async (
    named: readonly string[],
    options: O & { readonly filename?: readonly string[] },
    command: Command,
  ): Promise<void> => {
    const sources = [...named, ...(options.filename ?? [])];
    if (sources.length === 0)
      command.error(
        `No custom resource is given: name files or folders, or - for standard input, as in "${fullName(command)} web.yaml"`,
      );
    const run = await load();
    await run(sources, options);
  };
}

function fullName(command: Commander): string {
  return command.parent ? `${fullName(command.parent)} ${command.name()}` : command.name();
}

/** Describes the default of `--namespace` where a cluster is asked. */
const OF_CONTEXT = " (default: the context's)";

function synthCommand(): Command {
  const command = withSources(new Command('synth'))
    .summary('render custom resources to manifests')
    .description(
      'Validates custom resources and renders them to manifests, without asking any cluster. ' +
        'Nothing is written unless all of them can be rendered.',
    )
    .option(
      '-o, --output <dir>',
      'write one file per custom resource to this folder (default: standard output)',
    )
    .addOption(
      new Option('--stdout', 'write to standard output, also when run by "cdk8s synth"').conflicts('output'),
    )
    .option(
      '--references <file>',
      'a file or folder with objects that the custom resources refer to; may be given several times',
      several,
    )
    .action(onSources(async () => (await import('./synth.js')).runSynth));
  return withOptions(command, namespaceOption(), CONFIG, KINDS, policyOption(), ...kindOptions());
}

function fnCommand(): Command {
  return withFnOptions(new Command('fn'))
    .summary('render the custom resources of a ResourceList, for kustomize and kpt')
    .description(
      'A KRM function: reads a ResourceList from standard input, renders the custom resources in it, and writes the list ' +
        'to standard output. The functionConfig is one of them, or a ConfigMap whose keys are options, without dashes.',
    )
    .action(lazily(async () => (await import('./fn.js')).runFn));
}

function diffCommand(): Command {
  const live = '; or live custom resources, as KIND NAME... or KIND/NAME...';
  const command = withSources(new Command('diff'), live)
    .summary('show what custom resources would change in the cluster')
    .description(
      'Shows what would change in the cluster if these custom resources were applied and the controller had acted; of ' +
        'live ones, what this version of the kinds would change. Nothing is written. ' +
        'Exit code 0: nothing would change, 1: something would.',
    )
    .option(
      '--all',
      'all that is live in the namespace, of every kind or of KIND: the same changes are counted',
    )
    .addOption(allNamespaces('all that is live in every namespace'))
    .addOption(selectorOption('all that is live'))
    .option('--details <number>', 'with --all: number of objects that are shown in full', count)
    .addOption(outputFormat('text', 'json', 'yaml'))
    .action(lazily(async () => (await import('./diff.js')).runDiff));
  return withOptions(
    command,
    ...[namespaceOption(OF_CONTEXT), CONFIG, KINDS],
    ...[policyOption('that of the installed operator'), WATCH_NAMESPACE],
    operatorOption(`where the controller runs (default: where it is installed, else ${DEFAULT_NAMESPACE})`),
    ...[...CLUSTER, ...kindOptions()],
  );
}

function applyCommand(): Command {
  const command = withSources(new Command('apply'))
    .summary('apply custom resources and what is made of them, without a controller')
    .description(
      'Applies custom resources and, where no operator is installed that looks after them, what is made of them: once, ' +
        'as the controller would. Nothing is written unless all of it could be, by a dry run.',
    )
    .option('--prune', 'delete what these custom resources own, and do not render any more')
    .option('--wait', 'wait until they are ready, and report why not')
    .addOption(new DryRunOption(', or use "synth", which needs no cluster').conflicts('wait'))
    .addOption(
      new Option('--timeout <duration>', 'how long to wait')
        .argParser(milliseconds)
        .default(milliseconds('5m'), '5m'),
    )
    .action(onSources(async () => (await import('./apply.js')).runApply));
  return withOptions(
    command,
    ...[namespaceOption(OF_CONTEXT), CONFIG, KINDS, policyOption()],
    operatorOption('where an operator may be installed (default: it is looked for everywhere)'),
    ...CLUSTER,
  );
}

function adoptCommand(): Command {
  const command = withSources(
    new Command('adopt'),
    '; or live custom resources, as KIND NAME... or KIND/NAME...',
  )
    .summary('hand existing objects over to the custom resources that render them')
    .description(
      'Shows what would change in the existing objects that these custom resources render and do not own, and annotates them ' +
        'once confirmed: then the controller, or "apply", takes them over. Objects with a controller, and those that Helm ' +
        'would delete, are refused.',
    )
    .addOption(new DryRunOption())
    .option('-y, --yes', 'do not ask, as on a terminal; needed where there is none')
    .action(lazily(async () => (await import('./adopt.js')).runAdopt));
  return withOptions(
    command,
    ...[namespaceOption(OF_CONTEXT), CONFIG, KINDS, policyOption('that of the installed operator')],
    operatorOption(`where the controller runs (default: where it is installed, else ${DEFAULT_NAMESPACE})`),
    ...CLUSTER,
  );
}

function statusCommand(): Command {
  const command = new Command('status')
    .summary('show the status of custom resources, with children, pods and events')
    .description(
      'Shows the status of custom resources, with their children down to the pods, and their last events. Nothing is ' +
        'written. Exit code 0, also where something is not ready: scripts use "kubectl wait".',
    )
    .argument(
      '[target...]',
      'KIND, KIND NAME... or KIND/NAME..., as for kubectl (default: all of every kind)',
    )
    .option('-n, --namespace <name>', "default: the context's", namespace)
    .addOption(allNamespaces('in every namespace'))
    .addOption(selectorOption('only those'))
    .option('-w, --watch', 'show what changes, until interrupted')
    .addOption(outputFormat('text', 'wide', 'json', 'yaml', 'name'))
    .action(lazily(async () => (await import('./status.js')).runStatus));
  return withOptions(command, CONFIG, KINDS, ...CLUSTER);
}

function initCommand(): Command {
  return new Command('init')
    .summary('create a project for a kind of your own, or add a kind to one')
    .description(
      'Creates a project for a kind of your own, in a new folder: a CRD, a construct, tests, a sample and an image. In the ' +
        'folder of a project, adds another kind to it. Nothing is overwritten.',
    )
    .argument(
      '<name>',
      'the project and its folder, e.g. guest-book; or . for the current folder; or the kind to add',
    )
    .option(
      '--group <group>',
      'the group of its API, a domain of yours (default: example.com, or that of the project)',
    )
    .option('--kind <kind>', 'the kind (default: NAME in PascalCase)')
    .addOption(
      new Option(
        '--children <kinds>',
        `what it creates, of ${CHILDREN.join(', ')} (default: ${DEFAULT_CHILDREN.join()})`,
      ).argParser(list),
    )
    .option('--package <source>', 'this package, as a packed file (default: as it was installed)')
    .action(lazily(async () => (await import('./init/project.js')).runInit));
}

function devCommand(): Command {
  const command = new Command('dev')
    .summary('try a kind of your own in a cluster of its own, reloaded on each save')
    .description(
      'Starts a control plane on this machine, applies the CRDs of the kinds and the samples, runs the controller, and ' +
        'shows their status. Saves are loaded at once. Ctrl-C ends it, and leaves nothing behind.',
    )
    .argument(
      '[source...]',
      'files, folders and patterns of samples (default: samples/*.yaml, else sample.yaml, beside the configuration)',
    )
    .option(
      '--no-operator',
      'the control plane alone, in which nothing is installed: to try an installation on it',
    )
    .action(lazily(async () => (await import('./dev/session.js')).runDev));
  return withOptions(command, CONFIG, KINDS);
}

function devLoadCommand(): Command {
  const command = new Command('dev-load')
    .description('loads a configuration and samples, and sends them to its parent process')
    .argument('[source...]')
    .action(lazily(async () => (await import('./dev/load.js')).runDevLoad));
  return withOptions(command, CONFIG, KINDS);
}

function runCommand(): Command {
  const command = new Command('run')
    .description('keep the cluster as its custom resources say, until SIGTERM or SIGINT')
    .action(lazily(async () => (await import('./run.js')).runController));
  const workers = new Option('--workers <number>', 'custom resources in work at once, per kind');
  const election = 'work only while it holds the lease (default: in a Pod, yes)';
  const own = [
    workers.argParser(positiveInteger).default(16),
    new Option(
      '--selector <labels>',
      'only custom resources with these labels, as in team=shop,tier!=test (default: all)',
    ).argParser(labelSelector),
    new Option(
      '--observe-only [boolean]',
      'write nothing, without a lease, and report what it would do',
    ).argParser(boolean),
    new Option(
      '--drift <mode>',
      'what others change of our fields is set back, reported, or left without a word',
    )
      .choices(DRIFT_MODES)
      .default('correct'),
    new Option('--leader-elect [boolean]', election).argParser(boolean),
    new Option('--no-leader-elect', 'work at once; no other may run beside it'),
    new Option(
      '--leader-election-namespace <namespace>',
      "where the lease is, in the cluster it works on (default: the context's, else the Pod's namespace)",
    ).argParser(namespace),
    new Option('--log-level <level>', 'how much is logged').choices(LOG_LEVELS).default('info'),
    new Option('--log-format <format>', 'how it is logged')
      .choices(LOG_FORMATS)
      .default(process.stderr.isTTY ? 'pretty' : 'json', 'pretty on a terminal, else json'),
    new Option('--metrics-bind-address <address>', 'serves /metrics; 0 is off').default(':8080'),
    new Option(
      '--metrics-secure [boolean]',
      'serves /metrics by HTTPS, to those who may get it by RBAC',
    ).argParser(boolean),
    new Option(
      '--metrics-cert-path <folder>',
      'has the certificate of the metrics, which is read again once renewed (default: self-signed)',
    ),
    new Option('--metrics-cert-name <file>', 'the certificate in that folder').default('tls.crt'),
    new Option('--metrics-cert-key <file>', 'its key in that folder').default('tls.key'),
    new Option(
      '--health-bind-address <address>',
      'serves /healthz and /readyz; 0 is off; also as --health-probe-bind-address',
    ).default(':8081'),
    ...[CONFIG, KINDS, policyOption('everything but routes'), WATCH_NAMESPACE],
    new Option(
      '--watch-namespace-selector <labels>',
      'only custom resources in namespaces with these labels, which are followed (default: all)',
    )
      .argParser(labelSelector)
      .conflicts('watchNamespace'),
    ...kindOptions(),
  ];
  withOptions(command, ...own.map(fromEnvironment), ...CLUSTER);
  // The command line wins over the environment, also where two options exclude each other.
  const pair = command.options.filter(({ long }) => long?.startsWith('--watch-namespace'));
  for (const option of pair)
    command.on(`option:${option.name()}`, () => {
      for (const other of pair) if (other !== option) delete other.envVar;
    });
  return command;
}

/** Lets an option be given by the environment of a container, too. A variable that is empty is none. */
function fromEnvironment(option: Option): Option {
  const name = environmentName(option.long ?? '');
  if (option.negate || process.env[name] === '') return option;
  // Other commands have some of them, too.
  return Object.assign(new Option(option.flags), option).env(name);
}

export function installCommand(): Command {
  const command = new Command('install')
    .summary("print or apply the operator's own manifests")
    .description(
      "The operator's own manifests: CRDs, the controller, and the rights that its kinds need and no others. " +
        'Printed, unless they are to be applied.',
    )
    .option('-n, --namespace <name>', 'where the operator runs', namespace, DEFAULT_NAMESPACE)
    .option('--image <image>', 'image of the controller, with a tag or a digest', image, operatorImage())
    .option('--replicas <number>', 'controllers, of which one leads', positiveInteger, 2)
    .addOption(
      new Option(
        '--monitoring [parts]',
        `for Prometheus and Grafana: ${MONITORING_PARTS.join()} (all, if none is named)`,
      )
        .preset(MONITORING_PARTS.join())
        .argParser(monitoringParts),
    )
    .option(
      '--monitoring-labels <labels>',
      'on what is for Prometheus and Grafana, where these select by labels, e.g. release=prometheus',
      labels,
    )
    .option('--runbooks <url>', 'where the pages of the alerts are read', url)
    .option('--metrics-secure', 'serve metrics by HTTPS, to those who may get /metrics by RBAC')
    .option(
      '--metrics-cert-secret <name>',
      'with --metrics-secure: a Secret with the certificate, as of cert-manager (default: self-signed)',
      secretName,
    )
    .option(
      '--omit-user-ids',
      'leave UID, GID and fsGroup to the cluster, as OpenShift wants it (default: 65532)',
    )
    .addOption(new Option('--print', 'print YAML; this is the default').conflicts('apply'))
    .addOption(
      new Option('-o, --output <format>', 'helm: a chart with what is given here for default values')
        .choices(['yaml', 'json', 'helm'])
        .default('yaml')
        .conflicts('apply'),
    )
    .addOption(
      new Option('--output-dir <folder>', 'write to this folder (default: standard output)').conflicts(
        'apply',
      ),
    )
    .addOption(
      new Option(
        '--argo-health',
        "print Argo CD's health checks of the kinds instead, to patch argocd-cm",
      ).conflicts([
        ...['apply', 'replace', 'dryRun', 'acceptDataLoss', 'output', 'outputDir', 'namespace', 'image'],
        ...['replicas', 'monitoring', 'monitoringLabels', 'runbooks', 'metricsSecure', 'metricsCertSecret'],
        ...['omitUserIds', 'policy', 'watchNamespace', ...kindOptions().map((one) => one.attributeName())],
      ]),
    )
    .option('--apply', 'apply them to the cluster, and remove what an earlier installation had')
    .addOption(new DryRunOption(', or leave out --apply to print what would be applied'))
    .option('--replace', 'with --apply: drop options in use that this command leaves out, such as a policy')
    .option(
      '--accept-data-loss',
      'with --apply: apply CRDs even if stored objects lose fields, become invalid, or are of a version that goes',
    )
    .action(lazily(async () => (await import('./install.js')).runInstall));
  const shared = [CONFIG, KINDS, policyOption('everything but routes'), WATCH_NAMESPACE];
  return withOptions(command, ...shared, ...CLUSTER, ...kindOptions());
}

function uninstallCommand(): Command {
  const command = new Command('uninstall')
    .summary('remove what install has made')
    .description(
      'Removes what "reconstruct install" has made, and nothing of others. CRDs, custom resources, and what was ' +
        'made of them stay, unless they are purged.',
    )
    .option('-n, --namespace <name>', 'where the operator was installed', namespace, DEFAULT_NAMESPACE)
    .option('--purge', 'CRDs, custom resources and what was made of them go too; what is shared is released')
    .addOption(new DryRunOption())
    .option('-y, --yes', 'do not ask, as on a terminal; needed where there is none')
    .action(lazily(async () => (await import('./install.js')).runUninstall));
  return withOptions(command, CONFIG, ...CLUSTER);
}

function versionCommand(): Command {
  const command = new Command('version')
    .description('print the version of this command, and of the API server')
    .option('--client', 'only that of this command; no cluster is asked')
    .addOption(outputFormat('text', 'json', 'yaml'))
    .action(lazily(async () => (await import('./version.js')).runVersion));
  return withOptions(command, ...CLUSTER);
}

function completionCommand(): Command {
  return new Command('completion')
    .summary('print a script that completes commands and options')
    .description(
      'Prints a script for a shell, which completes commands, options and their values. ' +
        'bash: source <(reconstruct completion bash); zsh: source <(reconstruct completion zsh); ' +
        'fish: reconstruct completion fish | source. Put the line into the start file of the shell to keep it.',
    )
    .addArgument(new Argument('<shell>', 'the shell that runs the script').choices(['bash', 'zsh', 'fish']))
    .action(lazily(async () => (await import('./completion.js')).printScript));
}

function completeCommand(): Command {
  return new Command('complete')
    .description('prints the words that may complete a command line')
    .argument('[word...]')
    .action(lazily(async () => (await import('./completion.js')).printCompletions));
}

function lazily<A extends unknown[]>(
  load: () => Promise<(...args: A) => Promise<void>>,
): (...args: A) => Promise<void> {
  return async (...args) => (await load())(...args);
}

function outputFormat(...formats: readonly string[]): Option {
  return new Option('-o, --output <format>', 'for people or for programs').choices(formats).default('text');
}

function allNamespaces(description: string): Option {
  return new Option('-A, --all-namespaces', description).conflicts('namespace');
}

function selectorOption(those: string): Option {
  return new Option('-l, --selector <selector>', `${those} with these labels, as in app=web,tier!=test`);
}
