// Loaded before a program: whoever asks for the network is told that there is none.
import dgram from 'node:dgram';
import dns from 'node:dns';
import net from 'node:net';

const refuse = () => {
  throw new Error('There is no network here');
};
net.Socket.prototype.connect = refuse;
dgram.createSocket = refuse;
dns.lookup = refuse;
