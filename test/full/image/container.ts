import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { repoFolder } from '../../../sandbox/paths.js';
import type { Program } from '../../support/operator.js';
import { imageConfig } from './dockerfile.js';

/**
 * A place like a container of the image, made without an engine: a root folder of its own with Node, the libraries that
 * it needs, `/proc` and the one file of the bundle, all of it read-only; the user, the environment and the entrypoint that
 * the Dockerfile gives.
 *
 * **Assumptions.** Linux, and either root or a kernel that lets anybody make user namespaces. Without root, the user is
 * not the Dockerfile's but the one who runs this, who is nobody in particular either.
 */
export class Container implements Disposable {
  private readonly image = imageConfig();
  private readonly root = mkdtempSync(join(tmpdir(), 'container-'));
  private readonly mounts: [source: string, target: string][] = [];

  /** @param files what is mounted into it beside the image, by their paths in it */
  constructor(files: Readonly<Record<string, string>>) {
    chmodSync(this.root, 0o755);
    const [node] = this.image.entrypoint;
    for (const [source, target] of [[process.execPath, node!], ...librariesOf(process.execPath)])
      this.mount(source!, target!);
    const bundle = join(this.root, 'bundle');
    execFileSync(process.execPath, [join(repoFolder(), 'scripts/bundle.mjs'), '--image', '--out', bundle]);
    this.add('/app/reconstruct.mjs', readFileSync(join(bundle, 'reconstruct.mjs')));
    rmSync(bundle, { recursive: true });
    for (const [path, text] of Object.entries(files)) this.add(path, text);
    mkdirSync(join(this.root, 'proc'));
  }

  /** The entrypoint, with arguments. */
  command(...args: readonly string[]): Program {
    return this.invoke([...this.image.entrypoint, ...args]);
  }

  /** Node itself, with a script on its command line. */
  script(code: string): Program {
    return this.invoke([this.image.entrypoint[0]!, '--eval', code]);
  }

  /** All of it becomes the program in place, so signals to the process reach it. */
  private invoke(command: readonly string[]): Program {
    const isRoot = process.getuid?.() === 0;
    const script = [
      'set -eu',
      `mount --bind ${this.root} ${this.root}`,
      ...this.mounts.map(([source, target]) => `mount --bind ${source} ${this.root}${target}`),
      `mount --rbind /proc ${this.root}/proc`,
      ...['', ...this.mounts.map(([, target]) => target)].map(
        (path) => `mount -o remount,bind,ro ${this.root}${path}`,
      ),
      `exec chroot ${isRoot ? `--userspec=${this.image.user}` : ''} ${this.root} "$@"`,
    ];
    const namespaces = [...(isRoot ? [] : ['--user', '--map-root-user']), '--mount', '--propagation=private'];
    return {
      file: 'unshare',
      args: [...namespaces, 'sh', '-c', script.join('\n'), 'sh', ...command],
      // Of the host's environment nothing but what the programs of this line are found by; it goes with them.
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', ...this.image.env },
    };
  }

  private mount(source: string, target: string): void {
    this.add(target, '');
    this.mounts.push([source, target]);
  }

  private add(path: string, content: string | Buffer): void {
    const file = join(this.root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true });
  }
}

/** The shared libraries of a program and where they have to be, the loader included. */
function librariesOf(program: string): [string, string][] {
  const listed = execFileSync('ldd', [program], { encoding: 'utf8' });
  return [...listed.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, path]) => [path!, path!]);
}
