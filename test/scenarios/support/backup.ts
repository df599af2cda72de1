import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Sandbox } from '../../../sandbox/control-plane.js';
import { paths } from '../../../sandbox/layout.js';
import { goProgram } from '../../full/support/go-program.js';

interface Member {
  readonly name: string;
  readonly peerURLs: readonly [string];
}

/** Further than any write gets between a backup and its loss. */
const BUMP_REVISION = 1_000_000_000;

/** The path of etcd's own tool for backups. The first call builds it: ask before the tests, which have less time. */
export async function etcdutl(): Promise<string> {
  return goProgram({ name: 'etcdutl', folder: 'test/scenarios/support/etcdutl' });
}

/** A backup of a sandbox's etcd, and how to go back to it. @see https://etcd.io/docs/v3.6/op-guide/recovery/ */
export class Backup {
  private constructor(
    private readonly sandbox: Sandbox,
    private readonly file: string,
    private readonly member: Member,
  ) {}

  static async take(sandbox: Sandbox): Promise<Backup> {
    const post = async (path: string): Promise<string> =>
      (await fetch(sandbox.etcdUrl + path, { method: 'POST', body: '{}' })).text();
    const { members } = JSON.parse(await post('/v3/cluster/member/list')) as { members: [Member] };
    const parts = (await post('/v3/maintenance/snapshot')).trim().split('\n');
    const blobs = parts.map((part) => (JSON.parse(part) as { result: { blob: string } }).result.blob);
    const file = join(sandbox.dir, 'backup.db');
    await writeFile(file, Buffer.concat(blobs.map((blob) => Buffer.from(blob, 'base64'))));
    return new Backup(sandbox, file, members[0]);
  }

  /** As Kubernetes' own instructions have it: with later revisions, so that no client takes old ones for new ones. */
  async restore(): Promise<void> {
    const { sandbox, file, member } = this;
    const program = await etcdutl();
    await sandbox.stopApiServer();
    await sandbox.stopEtcd();
    const { etcdData } = paths(sandbox);
    await rm(etcdData, { recursive: true });
    const peer = member.peerURLs[0];
    await promisify(execFile)(program, [
      ...['snapshot', 'restore', file, `--data-dir=${etcdData}`, `--name=${member.name}`],
      ...[`--initial-cluster=${member.name}=${peer}`, `--initial-advertise-peer-urls=${peer}`],
      ...[`--bump-revision=${BUMP_REVISION}`, '--mark-compacted'],
    ]);
    await sandbox.startEtcd();
    await sandbox.startApiServer();
  }
}
