import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../contract/error.js';
import { ADMIN_FILES } from '../contract/kind.js';
import type { AdminFile, AdminFiles, Kind, Sections } from '../contract/kind.js';
import type { Clock } from '../client/clock.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { GivenFiles } from '../install/props.js';
import type { SharedOptions } from './options.js';
import { loadKinds } from './config.js';
import { CliError, WORDS } from './output.js';

/** Reads the text of a file. @param place named in messages @throws CliError with exit code 2 */
export type SectionsParser = (name: AdminFile, place: string, text: string) => Sections;

/** Returns a parser that knows the sections of every kind, also of those that `--kinds` leaves out. */
export async function sectionsParser({ config }: Pick<SharedOptions, 'config'>): Promise<SectionsParser> {
  // Loaded here, so that a controller without such a file needs no validator.
  const { sectionsIn } = await import('./sections.js');
  const kinds = await loadKinds({ config });
  return (...given) => sectionsIn(...given, kinds);
}

type FileOptions = Pick<SharedOptions, AdminFile | 'config'>;

/** Reads the files that are given. @throws CliError with exit code 2 */
export async function givenFiles(options: FileOptions): Promise<GivenFiles> {
  const given: { -readonly [Name in AdminFile]?: NonNullable<GivenFiles[Name]> } = {};
  for (const name of ADMIN_FILES) {
    const file = options[name];
    if (file === undefined) continue;
    const text = await readAdminFile(name, file);
    given[name] = { text, parsed: (await sectionsParser(options))(name, file, text) };
  }
  return given;
}

/** Returns the contents of the files that are given. @throws CliError with exit code 2 */
export async function adminFiles(options: FileOptions): Promise<AdminFiles> {
  const { policy, settings } = await givenFiles(options);
  return { policy: policy?.parsed, settings: settings?.parsed };
}

/** @throws CliError with exit code 2 */
export async function readAdminFile(name: AdminFile, file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const why = missing ? 'there is no such file' : `can't be read: ${messageOf(error)}`;
    throw new CliError(`${file}: ${why}; check the path given to --${name}`);
  });
}

interface FollowedFileProps {
  readonly name: AdminFile;
  readonly file: string;
  readonly read: () => Promise<string>;
  readonly parse: SectionsParser;
  /** Kinds that run: sections of others don't matter. */
  readonly kinds: readonly Pick<Kind, 'name' | 'policyAtStart'>[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

interface FileFollower {
  /** Throws if the kinds can't work with contents that are valid by their schemas. */
  check(sections: Sections): void;
  /** Called with the kinds whose section differs, once the new ones are in force. */
  changed(kinds: readonly string[]): void;
}

/** Interval between polls; a kubelet takes about a minute to update a mounted ConfigMap. */
const POLL_MILLISECONDS = 2_000;

/**
 * Policy or settings in force: the file's last valid content. The content is polled: a ConfigMap in a Pod changes by another link
 * to another folder, which no watch of a file sees.
 *
 * **Guarantees.** There always is a valid content. An invalid one, or a file that is gone, changes nothing, is logged once, and
 * counts as refused until the file is valid again. Kinds with `policyAtStart` keep the section of the start; another one
 * waits for a restart.
 *
 * **Caveats.** A change counts once two polls have found the same, so that a file that is being written isn't taken for
 * complete.
 */
export class FollowedFile {
  current: Sections;
  /** Digests of the content in force, of the last content that was read, and of the last that was acted upon. */
  digest: string;
  private seen: string;
  private settled: string;

  private constructor(
    private readonly props: FollowedFileProps,
    text: string,
  ) {
    this.current = props.parse(props.name, props.file, text);
    this.digest = this.seen = this.settled = digestOf(text);
  }

  static async open(props: FollowedFileProps): Promise<FollowedFile> {
    return new FollowedFile(props, await props.read());
  }

  /** Polls the file until the signal aborts; this doesn't keep the process alive. */
  follow(signal: AbortSignal, follower: FileFollower): void {
    this.props.clock.setTimer(POLL_MILLISECONDS, () => {
      if (signal.aborted) return;
      void this.poll(follower).finally(() => {
        this.follow(signal, follower);
      });
    });
  }

  private async poll(follower: FileFollower): Promise<void> {
    const { name, file, read, parse, log, metrics } = this.props;
    const found = await read().catch((error: unknown) => ({ error }));
    const digest = digestOf(typeof found === 'string' ? found : `error ${messageOf(found.error)}`);
    const isStable = digest === this.seen;
    this.seen = digest;
    if (!isStable || digest === this.settled) return;
    this.settled = digest;
    try {
      if (typeof found !== 'string') throw found.error;
      const sections = parse(name, file, found);
      follower.check(sections);
      this.put(sections, digest, follower);
    } catch (error) {
      metrics[`${name}Changes` as const].inc({ outcome: 'refused' });
      metrics[`${name}Refused` as const].set(1);
      const errors = error instanceof CliError ? error.lines : [messageOf(error)];
      log.error(
        { [name]: file, digest, inForce: this.digest, errors },
        `changed ${name} refused, keeping the previous ${WORDS[name].kept}`,
      );
    }
  }

  private put(sections: Sections, digest: string, follower: FileFollower): void {
    const { name, file, kinds, log, metrics } = this.props;
    const changed = kinds.filter((kind) => !isDeepStrictEqual(this.current[kind.name], sections[kind.name]));
    const isAtStart = ({ policyAtStart = false }): boolean => name === 'policy' && policyAtStart;
    const [waiting = [], followed = []] = [true, false].map((atStart) =>
      changed
        .filter((kind) => isAtStart(kind) === atStart)
        .map((kind) => kind.name)
        .sort(),
    );
    const kept = kinds.filter(isAtStart).map((kind) => [kind.name, this.current[kind.name]] as const);
    this.current = { ...sections, ...Object.fromEntries(kept) };
    this.digest = digest;
    const isAll = waiting.length === 0;
    metrics[`${name}Changes` as const].inc({ outcome: isAll ? 'in_force' : 'needs_restart' });
    metrics[`${name}Refused` as const].set(0);
    if (name === 'policy') metrics.policyNeedsRestart.set(isAll ? 0 : 1);
    if (isAll || followed.length > 0)
      log.info({ [name]: file, digest, kinds: followed }, `${name} changed and ${WORDS[name].is} in force`);
    if (!isAll)
      log.warn(
        { [name]: file, digest, kinds: waiting },
        'policy of these kinds changed and needs a restart, keeping the one of the start',
      );
    if (followed.length > 0) follower.changed(followed);
  }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
