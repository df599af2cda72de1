import { basename } from 'node:path';
import { Argument, Command as Commander, Option } from 'commander';
import type { ParseOptionsResult } from 'commander';
import { DRIFT_MODES } from '../contract/plan.js';
import { DEFAULT_NAMESPACE, environmentName } from '../install/names.js';
import { MONITORING_PARTS } from '../install/props.js';
import { LOG_FORMATS, LOG_LEVELS } from '../telemetry/logger.js';
import { CHILDREN, DEFAULT_CHILDREN } from './init/options.js';
import * as parse from './options.js';
import { CLUSTER, CONFIG, flag, kindOptions, KINDS, WATCH_NAMESPACE } from './options.js';
import { adminOptions, fnOptions, namespaceOption, operatorOption } from './options.js';
import { operatorImage, packageVersion } from './package.js';

/** Option that asks the API server what would be done, and writes nothing. */
class DryRunOption extends Option {
  /** @param instead what to do without the API server */
  constructor(readonly instead = '') {
    super('--dry-run', 'only print what would be done, by dry runs of the API server');
  }
}

/** Other spellings of our options. */
const ALIASES: Readonly<Record<string, string>> = { '--health-probe-bind-address': '--health-bind-address' };

/** Command whose switches may be written as programs in Go take them: `--wait=false`, `--dry-run=server`, `-v 6`. */
class Command extends Commander {
  override createCommand(name?: string): Command {
    return new Command(name);
  }

  override parseOptions(args: string[]): ParseOptionsResult {
    const end = args.includes('--') ? args.indexOf('--') : args.length;
    const known = args.slice(0, end).flatMap((arg, index) => this.ownSpelling(arg, args[index - 1]));
    return super.parseOptions([...known, ...args.slice(end)]);
  }

  private ownSpelling(arg: string, before = ''): string[] {
    const named = (name: string): Option | undefined =>
      this.options.find(({ long, short }) => [long, short].includes(name));
    if (named('-v') && /^-v=?\d+$/.test(arg)) return ['-v'];
    if (named('-v') && before === '-v' && /^\d$/.test(arg)) return [];
    const [, name = arg, value] = /^(--[^=]+)=(.*)$/s.exec(arg) ?? [];
    const alias = ALIASES[name];
    if (alias !== undefined && named(alias)) return [alias + arg.slice(name.length)];
    const option = named(name);
    if (value === undefined || !option?.isBoolean()) return [arg];
    const isDryRun = option instanceof DryRunOption;
    if (value === 'true' || (isDryRun && value === 'server')) return [name];
    if (value === 'false' || (isDryRun && value === 'none')) return [];
    if (isDryRun && value === 'client')
      this.error(`error: only the API server knows what would be done: write --dry-run${option.instead}`);
    return this.error(`error: ${arg}: write ${name}, ${name}=true or ${name}=false`);
  }

  /** Adds arguments and options that name custom resources, as for kubectl. @param others what an argument may also name */
  takesSources(others = ''): this {
    return this.argument(
      '[source...]',
      `files, folders with .yaml, .yml and .json files, or - for stdin${others}`,
    )
      .option('-f, --filename <file>', 'the same as an argument; may be given several times', parse.several)
      .option('-R, --recursive', 'look into subfolders too');
  }

  with(...options: readonly Option[]): this {
    for (const option of options) this.addOption(option);
    return this;
  }

  /** Sets the action. @param load loads its module when the command runs, so that `--help` is quick */
  runs(load: () => Promise<(...args: never[]) => Promise<void>>): this {
    return this.action(async (...args) => (await load())(...(args as never[])));
  }

  /** Sets the action on all given sources, of which at least one is required. */
  runsOnSources(load: () => Promise<(sources: readonly string[], options: never) => Promise<void>>): this {
    return this.action(async (named: string[], options: { readonly filename?: readonly string[] }) => {
      const sources = [...named, ...(options.filename ?? [])];
      if (sources.length === 0)
        this.error(
          'No custom resource is given: name files or folders, or - for standard input, as in ' +
            `"${this.parent?.name() ?? ''} ${this.name()} web.yaml"`,
        );
      const run = await load();
      await run(sources, options as never);
    });
  }
}

/** Names under which the package installs the command; the last makes it a plugin of kubectl. */
const NAMES: readonly string[] = ['reconstruct', 'cdk8s-reconstruct', 'kubectl-reconstruct'];

/** Returns the name by which this process was started, as a user types it. */
function programName([, script = '']: readonly string[]): string {
  const name = NAMES.find((each) => each === basename(script)) ?? 'reconstruct';
  return name.replace(/^kubectl-/, 'kubectl ');
}

/** Returns the whole command. */
export function program(): Command {
  const all = new Command(programName(process.argv))
    .description('Write a cdk8s construct, get a Kubernetes operator')
    .version(packageVersion())
    .configureHelp({ showGlobalOptions: true });
  const visible = [
    ...[initCommand, synthCommand, diffCommand, applyCommand, adoptCommand, releaseCommand],
    ...[statusCommand, fnCommand, devCommand, runCommand, installCommand, uninstallCommand],
    ...[versionCommand, completionCommand],
  ];
  for (const command of visible) all.addCommand(command());
  return all.addCommand(devLoadCommand(), { hidden: true }).addCommand(completeCommand(), { hidden: true });
}

/** Default of `--namespace` where a cluster is asked. */
const OF_CONTEXT = "the context's";
const LIVE_RESOURCES = '; or live custom resources, as KIND NAME... or KIND/NAME...';
const OPERATOR = operatorOption(
  `where the controller runs (default: where it is installed, else ${DEFAULT_NAMESPACE})`,
);
const ANY_OPERATOR = operatorOption('where an operator may be installed (default: any namespace)');
const OPERATOR_FILES = adminOptions('that of the installed operator', 'those of the installed operator');
const TARGETS = 'KIND, KIND NAME... or KIND/NAME..., as for kubectl (default: every kind)';
const ON_UPGRADE =
  'what another build would change: apply it, hold it until it is released (of all kinds, or of hold=KIND,...), or this many at once';
const YES = new Option('-y, --yes', 'do not ask, as on a terminal; needed where there is none');

function synthCommand(): Command {
  return new Command('synth')
    .summary('render custom resources to manifests')
    .description('Validates and renders custom resources, all or none, without a cluster.')
    .takesSources()
    .option('-o, --output <dir>', 'folder for one file per custom resource (default: standard output)')
    .addOption(flag('--stdout', 'standard output, also when run by "cdk8s synth"').conflicts('output'))
    .option('--references <file>', 'objects that are referred to; may be given several times', parse.several)
    .with(namespaceOption(), CONFIG, KINDS, ...adminOptions(), ...kindOptions())
    .runsOnSources(async () => (await import('./synth.js')).runSynth);
}

function fnCommand(): Command {
  return new Command('fn')
    .summary('render the custom resources of a ResourceList, for kustomize and kpt')
    .description(
      'Reads a ResourceList from standard input, renders its custom resources, and writes it to standard output.',
    )
    .with(...fnOptions())
    .runs(async () => (await import('./fn.js')).runFn);
}

function diffCommand(): Command {
  return new Command('diff')
    .summary('show what custom resources would change in the cluster')
    .description(
      'Shows what would change if these custom resources were applied and the controller had acted; with --since, what has ' +
        'changed in Git. Writes nothing. Exit code 0: nothing would change, 1: something would.',
    )
    .takesSources(LIVE_RESOURCES)
    .option('--all', 'all that is live in the namespace, or all of KIND; equal changes are counted')
    .addOption(allNamespaces('all live custom resources of every namespace'))
    .addOption(selectorOption('all live custom resources'))
    .addOption(
      flag(
        '--since <revision>',
        'without a cluster: what these files render to now, beside a revision of Git, or a folder; runs the code of that revision',
      ).conflicts(['all', 'allNamespaces', 'selector']),
    )
    .option(
      '--details <number>',
      'with --all or --since: number of objects that are shown in full',
      parse.count,
    )
    .addOption(outputFormat('text', 'json', 'yaml', 'markdown'))
    .with(namespaceOption(OF_CONTEXT), CONFIG, KINDS, ...OPERATOR_FILES, WATCH_NAMESPACE, OPERATOR)
    .with(...CLUSTER, ...kindOptions())
    .runs(async () => (await import('./diff.js')).runDiff);
}

function applyCommand(): Command {
  return new Command('apply')
    .summary('apply custom resources and the objects rendered from them, without a controller')
    .description(
      'Applies custom resources and, where no installed operator is responsible, the objects rendered from them, once. ' +
        'Nothing is written unless a dry run of all of it succeeds.',
    )
    .takesSources()
    .option('--prune', 'delete objects that these custom resources own and no longer render')
    .option('--wait', 'wait until they are ready, and report why they are not')
    .addOption(new DryRunOption(', or use "synth", which needs no cluster').conflicts('wait'))
    .addOption(flag('--timeout <duration>', 'how long to wait', parse.duration).default(300_000, '5m'))
    .with(namespaceOption(OF_CONTEXT), CONFIG, KINDS, ...adminOptions(), ANY_OPERATOR, ...CLUSTER)
    .runsOnSources(async () => (await import('./apply.js')).runApply);
}

function adoptCommand(): Command {
  return new Command('adopt')
    .summary('hand existing objects over to the custom resources that render them')
    .description(
      'Shows what would change in existing objects that these custom resources render and do not own. Annotates them once ' +
        'confirmed, so that the controller, or "apply", takes them over.',
    )
    .takesSources(LIVE_RESOURCES)
    .addOption(new DryRunOption())
    .addOption(YES)
    .with(namespaceOption(OF_CONTEXT), CONFIG, KINDS, ...OPERATOR_FILES, OPERATOR, ...CLUSTER)
    .runs(async () => (await import('./adopt.js')).runAdopt);
}

function releaseCommand(): Command {
  const resume = flag('--resume', 'have rollouts that have stopped go on, of KIND or of all kinds');
  return new Command('release')
    .description('release custom resources whose update "run --on-upgrade" holds')
    .argument('[target...]', TARGETS)
    .option('-n, --namespace <name>', `(default: ${OF_CONTEXT})`, parse.namespace)
    .option('--dry-run', 'only print what would be released')
    .addOption(resume.conflicts(['namespace', 'allNamespaces', 'selector']))
    .with(allNamespaces('custom resources of every namespace'), selectorOption('only custom resources'))
    .with(ANY_OPERATOR, CONFIG, KINDS, ...CLUSTER)
    .runs(async () => (await import('./release.js')).runRelease);
}

function statusCommand(): Command {
  return new Command('status')
    .summary('show the status of custom resources, with children, pods and events')
    .description(
      'Shows the status of custom resources, with children down to the pods, and their last events.',
    )
    .argument('[target...]', TARGETS)
    .option('-n, --namespace <name>', `(default: ${OF_CONTEXT})`, parse.namespace)
    .addOption(allNamespaces('custom resources of every namespace'))
    .addOption(selectorOption('only custom resources'))
    .option('-w, --watch', 'show changes, until interrupted')
    .addOption(outputFormat('text', 'wide', 'json', 'yaml', 'name'))
    .with(CONFIG, KINDS, ...CLUSTER)
    .runs(async () => (await import('./status.js')).runStatus);
}

function initCommand(): Command {
  const children = `what it creates, of ${CHILDREN.join(', ')} (default: ${DEFAULT_CHILDREN.join()})`;
  return new Command('init')
    .summary('create a project for a kind of your own, or add a kind to one')
    .description(
      'Creates a project in a new folder, or adds a kind to the one in the current folder. Overwrites nothing.',
    )
    .argument(
      '<name>',
      'project and its folder, e.g. guest-book; or . for the current one; or the kind to add',
    )
    .option('--group <group>', 'API group, a domain of yours (default: example.com, or that of the project)')
    .option('--kind <kind>', 'the kind (default: NAME in PascalCase)')
    .addOption(flag('--children <kinds>', children, parse.list))
    .option('--package <source>', 'this package, as a packed file (default: as it was installed)')
    .runs(async () => (await import('./init/project.js')).runInit);
}

function devCommand(): Command {
  return new Command('dev')
    .summary('try a kind of your own in a cluster of its own, reloaded on each save')
    .description(
      'Starts a control plane on this machine with the CRDs of the kinds and the samples, runs the controller, and shows ' +
        'their status. Saves are loaded at once. Ctrl-C ends it, and leaves nothing behind.',
    )
    .argument(
      '[source...]',
      'files, folders and patterns of samples (default: samples/*.yaml, else sample.yaml)',
    )
    .option('--no-operator', 'an empty control plane alone, to try an installation on')
    .with(CONFIG, KINDS)
    .runs(async () => (await import('./dev/session.js')).runDev);
}

function devLoadCommand(): Command {
  return new Command('dev-load')
    .description('loads a configuration and samples, and sends them to its parent process')
    .argument('[source...]')
    .with(CONFIG, KINDS)
    .runs(async () => (await import('./dev/load.js')).runDevLoad);
}

function runCommand(): Command {
  const own = [
    flag('--workers <number>', 'custom resources in work at once, per kind', parse.integer, 16),
    flag('--selector <labels>', 'only custom resources with these labels, e.g. team=shop', parse.selector),
    flag('--observe-only [boolean]', 'only report what it would do, without a lease', parse.boolean),
    flag('--drift <mode>', 'how to treat changes others make to our fields: correct, report or ignore')
      .choices(DRIFT_MODES)
      .default('correct'),
    flag('--on-upgrade <mode>', ON_UPGRADE, parse.onUpgrade).default({ mode: 'apply' }, 'apply'),
    flag(
      '--ready-within <seconds>',
      'with --on-upgrade NUMBER: stop where one that was ready is not again by then',
      parse.integer,
      600,
    ),
    flag('--leader-elect [boolean]', 'work only with the lease (default: in a Pod, yes)', parse.boolean),
    flag('--no-leader-elect', 'work at once; no other may run beside it'),
    flag(
      '--leader-election-namespace <namespace>',
      "of the lease, in the cluster it works on (default: the context's, else the Pod's)",
      parse.namespace,
    ),
    flag('--log-level <level>', 'how much is logged').choices(LOG_LEVELS).default('info'),
    flag('--log-format <format>', 'format of the log')
      .choices(LOG_FORMATS)
      .default(process.stderr.isTTY ? 'pretty' : 'json', 'pretty on a terminal, else json'),
    flag('--metrics-bind-address <address>', 'serves /metrics; 0 is off').default(':8080'),
    flag('--metrics-secure [boolean]', 'serve /metrics by HTTPS, to clients that RBAC allows', parse.boolean),
    flag('--metrics-cert-path <folder>', 'its certificate, reloaded when renewed (default: self-signed)'),
    flag('--metrics-cert-name <file>', 'the certificate in that folder').default('tls.crt'),
    flag('--metrics-cert-key <file>', 'its key in that folder').default('tls.key'),
    flag('--health-bind-address <address>', 'serves /healthz and /readyz; 0 is off').default(':8081'),
    ...[CONFIG, KINDS, ...adminOptions('all but routes is allowed'), WATCH_NAMESPACE],
    flag(
      '--watch-namespace-selector <labels>',
      'only custom resources in namespaces with these labels, as they change (default: all)',
      parse.selector,
    ).conflicts('watchNamespace'),
    ...kindOptions(),
  ];
  const command = new Command('run')
    .description('reconcile the custom resources of the cluster, until SIGTERM or SIGINT')
    .with(...own.map(fromEnvironment), ...CLUSTER)
    .runs(async () => (await import('./run.js')).runController);
  // The command line wins over the environment, also between options that exclude each other.
  const pair = command.options.filter(({ long }) => long?.startsWith('--watch-namespace'));
  for (const option of pair)
    command.on(`option:${option.name()}`, () => {
      for (const other of pair) if (other !== option) delete other.envVar;
    });
  return command;
}

/** Returns an option that the environment of a container may give, too. An empty variable counts as unset. */
function fromEnvironment(option: Option): Option {
  const name = environmentName(option.long ?? '');
  if (option.negate || process.env[name] === '') return option;
  // A copy, since other commands have some of them.
  return Object.assign(new Option(option.flags), option).env(name);
}

export function installCommand(): Command {
  const manifests = [
    flag('-n, --namespace <name>', 'where the operator runs', parse.namespace, DEFAULT_NAMESPACE),
    flag('--image <image>', 'controller image, with a tag or a digest', parse.image, operatorImage()),
    flag('--replicas <number>', 'controllers, of which one leads', parse.integer, 2),
    flag(
      '--monitoring [parts]',
      `for Prometheus and Grafana: ${MONITORING_PARTS.join()} (all, if none is named)`,
      parse.monitoringParts,
    ).preset(MONITORING_PARTS.join()),
    flag('--monitoring-labels <labels>', 'for their selectors, e.g. release=prometheus', parse.labels),
    flag('--runbooks <url>', "address of the alerts' runbooks", parse.url),
    flag('--metrics-secure', 'serve /metrics by HTTPS, to clients that RBAC allows'),
    flag(
      '--metrics-cert-secret <name>',
      'with --metrics-secure: Secret with the certificate, as of cert-manager (default: self-signed)',
      parse.secretName,
    ),
    flag('--on-upgrade <mode>', ON_UPGRADE, (text) => {
      parse.onUpgrade(text);
      return text;
    }),
    flag('--omit-user-ids', 'leave UID, GID and fsGroup to the cluster, e.g. OpenShift (default: 65532)'),
    flag('-o, --output <format>', 'helm: a chart with the given options as default values')
      .choices(['yaml', 'json', 'helm'])
      .default('yaml')
      .conflicts('apply'),
    flag('--output-dir <folder>', 'write to this folder (default: standard output)').conflicts('apply'),
    flag('--apply', 'apply them to the cluster, and remove what an earlier installation had'),
    new DryRunOption(', or leave out --apply to print what would be applied'),
    flag('--replace', 'with --apply: drop options in use that this command leaves out, such as a policy'),
    flag(
      '--accept-data-loss',
      'with --apply: apply CRDs even if stored objects lose fields, become invalid, or are of a version that goes',
    ),
    ...[...adminOptions('all but routes is allowed'), WATCH_NAMESPACE, ...kindOptions()],
  ];
  return new Command('install')
    .summary("print or apply the operator's own manifests")
    .description(
      'Prints, or applies with --apply, CRDs, the controller, and only the rights that its kinds need.',
    )
    .addOption(flag('--print', 'print YAML; this is the default').conflicts('apply'))
    .addOption(
      flag(
        '--argo-health',
        "print Argo CD's health checks of the kinds instead, to patch argocd-cm",
      ).conflicts(manifests.map((option) => option.attributeName())),
    )
    .with(...manifests, CONFIG, KINDS, ...CLUSTER)
    .runs(async () => (await import('./install.js')).runInstall);
}

function uninstallCommand(): Command {
  return new Command('uninstall')
    .summary('remove what install created')
    .description(
      'Removes what "reconstruct install" created. CRDs, custom resources and their objects stay unless purged.',
    )
    .option('-n, --namespace <name>', 'where the operator was installed', parse.namespace, DEFAULT_NAMESPACE)
    .option('--purge', 'also delete CRDs, custom resources and their objects; shared objects are released')
    .addOption(new DryRunOption())
    .addOption(YES)
    .with(CONFIG, ...CLUSTER)
    .runs(async () => (await import('./install.js')).runUninstall);
}

function versionCommand(): Command {
  return new Command('version')
    .description('print the version of this command, and of the API server')
    .option('--client', 'only that of this command, without a cluster')
    .addOption(outputFormat('text', 'json', 'yaml'))
    .with(...CLUSTER)
    .runs(async () => (await import('./version.js')).runVersion);
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
    .runs(async () => (await import('./completion.js')).printScript);
}

function completeCommand(): Command {
  return new Command('complete')
    .description('prints the words that may complete a command line')
    .argument('[word...]')
    .runs(async () => (await import('./completion.js')).printCompletions);
}

function outputFormat(...formats: readonly string[]): Option {
  return flag('-o, --output <format>', 'for people or for programs').choices(formats).default('text');
}

function allNamespaces(description: string): Option {
  return flag('-A, --all-namespaces', description).conflicts('namespace');
}

function selectorOption(those: string): Option {
  return flag('-l, --selector <selector>', `${those} with these labels, e.g. app=web,tier!=test`);
}
