// How is a page built that needs no network and runs only its own scripts?
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse::html {

struct Page {
  std::string title;
  std::string data;                       // JSON that the scripts read from the element "data"
  std::vector<std::string_view> styles;   // CSS, in order
  std::vector<std::string_view> scripts;  // JavaScript, in order
  std::string licences;                   // of the inlined parts, as a comment
  bool may_connect = false;               // to its own server
};

// One file. Nothing is loaded from elsewhere, which its content security policy also forbids; the policy
// names inline scripts and styles by hash. Title and data are always escaped. The same page gives the same
// bytes.
std::string write_page(const Page& page);

// Parts that both pages share: the pipeline view, curves (uPlot, with its licence) and their style.
Page shared_page();

// JSON that is safe inside a script element: no tag can end the element. Characters that steer a page, such
// as marks of direction, are shown as \\u{202e}.
std::string inline_json(const std::string& json);

}  // namespace rehearse::html
