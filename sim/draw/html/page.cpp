#include "draw/html/page.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/utf8.h"
#include "draw/html/assets.h"
#include "draw/html/sha256.h"
#include "draw/text.h"

namespace rehearse::html {

namespace {

std::string joined(const std::vector<std::string_view>& parts) {
  std::string text;
  for (const std::string_view part : parts) text.append(part).append("\n");
  return text;
}

// Our scripts must not contain the end tag of a script element, not even in a comment.
std::string policy(const Page& page, const std::string& script, const std::string& style) {
  return fmt::format(
      "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; connect-src {}; "
      "base-uri 'none'; form-action 'none'",
      sha256_base64(script), sha256_base64(style), page.may_connect ? "'self'" : "'none'");
}

}  // namespace

std::string inline_json(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (std::size_t at = 0; at < json.size();) {
    const std::size_t size = std::max<std::size_t>(1, utf8_size(std::string_view(json).substr(at)));
    const std::string_view character(json.data() + at, size);
    if (character == "<")
      text += "\\u003c";
    else if (size > 1 && steers(character))
      text += fmt::format("\\\\u{{{:x}}}", code_point(character));
    else
      text += character;
    at += size;
  }
  return text;
}

Page shared_page() {
  Page page;
  page.styles = {kUPlotMinCss, kPageCss};
  page.scripts = {kUPlotIifeMinJs, kFormatJs, kTimelineJs, kChartsJs, kFiguresJs};
  page.licences =
      fmt::format("uPlot 1.6.32 (https://github.com/leeoniya/uPlot) is inlined below.\n\n{}", kLICENSE);
  return page;
}

std::string write_page(const Page& page) {
  const std::string style = joined(page.styles), script = joined(page.scripts);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<!--\n{}-->\n<style>{}</style>\n</head>\n<body>\n<main id=\"page\"></main>\n"
      "<noscript>This page needs JavaScript, all of which it contains.</noscript>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n<script>{}</script>\n</body>\n</html>\n",
      policy(page, script, style), svg::escape(page.title), page.licences, style, inline_json(page.data),
      script);
}

}  // namespace rehearse::html
