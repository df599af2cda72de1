import { Command, InvalidArgumentError, Option } from 'commander';
import type { FlagValues } from '../contract/kind.js';
import type { InstallRequest } from '../install/apply.js';
import { DEFAULT_NAMESPACE, INSTALL_NAME, INSTALLATION_LABELS } from '../install/names.js';
import { MONITORING_PARTS } from '../install/props.js';
import type { InstallProps, MonitoringPart } from '../install/props.js';
import { builtInFlags } from '../kinds/flags.js';
import { loadKinds } from './config.js';
import { CliError } from './exit.js';
import { addKindFlags, kindFlagValues, list, namespace, positiveInteger, withShared } from './options.js';
import type { SharedOptions } from './options.js';
import { print, printError } from './output.js';
import { policyParser, readPolicy } from './policy-file.js';
import { operatorImage, packageVersion } from './version.js';

interface InstallOptions extends SharedOptions {
  readonly namespace: string;
  readonly image: string;
  readonly replicas: number;
  readonly monitoring?: readonly MonitoringPart[];
  readonly monitoringLabels?: Readonly<Record<string, string>>;
  readonly runbooks?: string;
  readonly apply?: boolean;
  readonly replace?: boolean;
  readonly acceptDataLoss?: boolean;
  readonly format: 'yaml' | 'helm';
  readonly output?: string;
}

const OUTPUT_FILE = 'reconstruct.yaml';

/** `reconstruct install`: prints or applies the operator's own manifests, or writes them as a Helm chart. */
export function installCommand(): Command {
  const command = new Command('install');
  command
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
    .addOption(new Option('--print', 'print YAML; this is the default').conflicts('apply'))
    .addOption(
      new Option('--format <format>', 'YAML, or a Helm chart with what is given here for default values')
        .choices(['yaml', 'helm'])
        .default('yaml'),
    )
    .addOption(
      new Option('-o, --output <folder>', 'write to this folder (default: standard output)').conflicts(
        'apply',
      ),
    )
    .option('--apply', 'apply them to the cluster, and remove what an earlier installation had')
    .option('--replace', 'with --apply: drop options in use that this command leaves out, such as a policy')
    .option(
      '--accept-data-loss',
      'with --apply: apply CRDs even if stored objects lose fields, become invalid, or are of a version that goes',
    )
    .action((options: InstallOptions) => {
      refuseContradictions(options, command.getOptionValueSource('namespace') !== 'default');
      const { replace = false, image: name, replicas } = options;
      // A proposed command takes these over.
      const isGiven = (option: string): boolean => command.getOptionValueSource(option) === 'cli';
      const given: Readonly<Record<string, string | undefined>> = {
        '--config': options.config,
        ...(isGiven('image') && { '--image': name }),
        ...(isGiven('replicas') && { '--replicas': String(replicas) }),
      };
      const cluster = { '--kubeconfig': options.kubeconfig, '--context': options.context };
      return install(options, kindFlagValues(options), {
        ...{ replace, flags: builtInFlags, given: { cluster: defined(cluster), options: defined(given) } },
      });
    });
  withShared(command, {
    ...({ config: true, kinds: true, policy: 'everything but routes', watchNamespace: true } as const),
    ...({ kubeconfig: true, context: true } as const),
  });
  return addKindFlags(command);
}

function defined(options: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(options).flatMap(([name, value]) => (value ? [[name, value]] : [])),
  );
}

/** @throws CliError with exit code 2 */
function refuseContradictions(options: InstallOptions, hasNamespace: boolean): void {
  const isChart = options.format === 'helm';
  const refuse = (isWrong: unknown, message: string): void => {
    if (isWrong) throw new CliError(message, 2);
  };
  const noChart = '--apply needs no chart: leave out --format helm, or give -o DIR and use "helm install"';
  refuse(isChart && options.apply, noChart);
  const byHelm = '--namespace is for Helm to say: leave it out, and use "helm install --namespace"';
  refuse(isChart && hasNamespace, byHelm);
  refuse(options.replace && !options.apply, '--replace needs --apply: add it');
  refuse(options.acceptDataLoss && !options.apply, '--accept-data-loss needs --apply: add it');
  const { monitoring, monitoringLabels, runbooks } = options;
  refuse(monitoringLabels && !monitoring, '--monitoring-labels needs --monitoring: add it');
  refuse(runbooks !== undefined && !monitoring, '--runbooks needs --monitoring: add it');
}

async function install(options: InstallOptions, flags: FlagValues, request: InstallRequest): Promise<void> {
  const { namespace, image, replicas, watchNamespace, policy: file, monitoring: parts } = options;
  const { monitoringLabels, runbooks } = options;
  const kinds = await loadKinds(options);
  const text = file === undefined ? undefined : await readPolicy(file);
  const policy = file !== undefined &&
    text !== undefined && { text, parsed: (await policyParser(options))(file, text) };
  const monitoring = parts && {
    parts,
    ...(monitoringLabels && { labels: monitoringLabels }),
    ...(runbooks !== undefined && { runbooks }),
  };
  const props: InstallProps = {
    ...{ namespace, image, replicas, kinds, flags },
    ...(watchNamespace && { watchNamespaces: watchNamespace }),
    ...(policy && { policy }),
    ...(monitoring && { monitoring }),
  };
  await (options.apply ? apply(props, options, request) : write(props, options));
}

/** Prints the manifests, or writes them or the chart into a folder. */
async function write(props: InstallProps, options: InstallOptions): Promise<void> {
  const folder = options.output ?? (process.env.CDK8S_OUTDIR || undefined);
  const isChart = options.format === 'helm';
  if (isChart && folder === undefined) throw new CliError('A chart is a folder: name it with -o DIR', 2);
  const [{ asCliError }, { installManifests }, { foreignNamespaces, kindsForAnyCluster }, { helmChart }] =
    await Promise.all([
      import('./cluster.js'),
      import('../install/manifests.js'),
      import('../install/installable.js'),
      import('../install/chart.js'),
    ]);
  const [{ manifestText }, { writeFolder }] = await Promise.all([
    import('../synth/output.js'),
    import('../synth/folder.js'),
  ]);
  const isChosen = options.kinds !== undefined;
  try {
    if (isChart && folder !== undefined) {
      const on = props.kinds.filter((kind) => isChosen || foreignNamespaces(kind, props).length === 0);
      writeFolder(folder, helmChart({ ...props, on }), 'chart');
      return;
    }
    const kinds = isChosen ? props.kinds : kindsForAnyCluster(props, printError);
    const text = manifestText(installManifests({ ...props, kinds }));
    if (folder === undefined) await print(text);
    else writeFolder(folder, [{ name: OUTPUT_FILE, text }]);
  } catch (error) {
    throw asCliError(error);
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function apply(props: InstallProps, options: InstallOptions, request: InstallRequest): Promise<void> {
  const [
    { withCluster },
    { applyInstallation },
    { refuseDataLoss },
    { availableMonitoring, installableKinds },
  ] = await Promise.all([
    import('./cluster.js'),
    import('../install/apply.js'),
    import('./data-loss.js'),
    import('../install/installable.js'),
  ]);
  await withCluster(options, async (cluster) => {
    const mayLeaveOut = options.kinds === undefined;
    const kinds = await installableKinds(props, cluster, { mayLeaveOut, tell: printError });
    const monitoring = props.monitoring && (await availableMonitoring(props.monitoring, cluster, printError));
    await applyInstallation({ ...props, kinds, ...(monitoring && { monitoring }) }, cluster, say, {
      ...request,
      ...(!options.acceptDataLoss && { checkDefinitions: (changes) => refuseDataLoss(changes, cluster) }),
    });
    const { image: name, namespace: home } = options;
    // No registry serves an image of that name.
    if (name === operatorImage() && name.startsWith('reconstruct:'))
      say(`The image ${name} has to be on the nodes: put it there, or name one with --image`);
    say(`Wait for it with "kubectl rollout status deployment/${INSTALL_NAME} -n ${home}"`);
  });
}

function image(value: string): string {
  const reference = /^[a-z0-9][\w.-]*(:\d+)?(\/[\w.-]+)*(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$/i;
  if (!reference.test(value)) throw new InvalidArgumentError(`${value} can't name an image.`);
  if (!/(:[\w][\w.-]*|@sha256:[0-9a-f]{64})$/.test(value.slice(value.lastIndexOf('/') + 1)))
    throw new InvalidArgumentError(
      `${value} may be another image tomorrow: add a tag or a digest, as in ${value}:${packageVersion()}.`,
    );
  return value;
}

function monitoringParts(value: string): MonitoringPart[] {
  const named = list(value, undefined);
  const unknown = named.find((name) => !MONITORING_PARTS.some((part) => part === name));
  if (unknown !== undefined)
    throw new InvalidArgumentError(`There is no ${unknown}: name some of ${MONITORING_PARTS.join(', ')}.`);
  return MONITORING_PARTS.filter((part) => named.includes(part));
}

const NAME = '[A-Za-z0-9]([-\\w.]{0,61}[A-Za-z0-9])?';
const LABEL = new RegExp(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?${NAME}=(${NAME})?$`);

function labels(value: string): Record<string, string> {
  const wanted = list(value, undefined).map((label): [string, string] => {
    if (!LABEL.test(label)) throw new InvalidArgumentError(`${label} is no label: write name=value.`);
    const [name = '', text = ''] = label.split('=');
    if (INSTALLATION_LABELS.includes(name))
      throw new InvalidArgumentError(`${name} is set by the installation itself: leave it out.`);
    return [name, text];
  });
  return Object.fromEntries(wanted);
}

function url(value: string): string {
  if (!URL.canParse(value) || !/^https?:/.test(value))
    throw new InvalidArgumentError(`${value} is no URL: write one that begins with https://.`);
  return value.replace(/(?<!\/)\/+$/, '');
}
