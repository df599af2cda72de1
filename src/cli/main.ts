#!/usr/bin/env node
import { program } from './commands.js';
import { execute } from './exit.js';

await execute(program());
