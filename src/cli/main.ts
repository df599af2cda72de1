#!/usr/bin/env node
import { Command } from 'commander';
import { applyCommand } from './apply.js';
import { completeCommand, completionCommand } from './completion.js';
import { devCommand, devLoadCommand } from './dev.js';
import { diffCommand } from './diff.js';
import { execute } from './exit.js';
import { fnCommand } from './fn.js';
import { initCommand } from './init.js';
import { installCommand } from './install.js';
import { runCommand } from './run.js';
import { statusCommand } from './status.js';
import { synthCommand } from './synth.js';
import { uninstallCommand } from './uninstall.js';
import { packageVersion } from './version.js';

function program(): Command {
  return new Command('reconstruct')
    .description('Write a cdk8s construct, get a Kubernetes operator')
    .version(packageVersion())
    .addCommand(initCommand())
    .addCommand(synthCommand())
    .addCommand(diffCommand())
    .addCommand(applyCommand())
    .addCommand(statusCommand())
    .addCommand(fnCommand())
    .addCommand(devCommand())
    .addCommand(devLoadCommand(), { hidden: true })
    .addCommand(runCommand())
    .addCommand(installCommand())
    .addCommand(uninstallCommand())
    .addCommand(completionCommand())
    .addCommand(completeCommand(), { hidden: true })
    .configureHelp({ showGlobalOptions: true });
}

await execute(program());
