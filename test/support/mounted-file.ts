import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A file as a kubelet brings that of a ConfigMap into a Pod: another folder for each content, and a link that is replaced. */
export class MountedFile {
  readonly folder = mkdtempSync(join(tmpdir(), 'mounted-'));
  readonly path: string;
  private version = 0;

  constructor(private readonly name: string) {
    this.path = join(this.folder, name);
    symlinkSync(`..data/${name}`, this.path);
  }

  put(text: string): void {
    const folderOfVersion = `..version_${++this.version}`;
    mkdirSync(join(this.folder, folderOfVersion));
    writeFileSync(join(this.folder, folderOfVersion, this.name), text);
    symlinkSync(folderOfVersion, join(this.folder, '..data_tmp'));
    renameSync(join(this.folder, '..data_tmp'), join(this.folder, '..data'));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}
